"""What clients send: the bodies of requests, which are decoded and checked in one step."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

MOST_ITEMS = 1000

DecisionId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        description="An id of your choice, such as a UUID, by which the decision is known. A"
        " repeated request with the same id gets the same reply.",
    ),
]
Token = Annotated[
    str,
    Meta(max_length=200, description="The token of the reply to the request for the decision."),
]
Unit = Annotated[
    str | int,
    Meta(
        description="The person, by a name or number that is always the same. It is kept as a"
        " keyed hash. Required with max_rounds."
    ),
]
Arm = Annotated[str | int, Meta(description="An arm, by name or number.")]
Reason = Annotated[
    str, Meta(min_length=1, max_length=500, description="Why; it is kept in the audit trail.")
]


class Message(Struct, forbid_unknown_fields=True):
    """Base class of bodies."""


class DecisionRequest(Message):
    """A request for a decision."""

    decision_id: DecisionId | None = None
    unit: Unit | None = None
    contexts: Annotated[
        list[Any] | None,
        Meta(
            description="Features: a row of numbers for each arm; or one vector, if the experiment"
            " takes that of a person."
        ),
    ] = None
    advice: Annotated[
        list[Any] | None,
        Meta(description="For each expert, the probability of each arm."),
    ] = None
    available: (
        Annotated[
            list[Arm],
            Meta(min_length=1, description="The arms that may be served; by default all."),
        ]
        | None
    ) = None
    targets: Annotated[
        dict[str, Arm] | None,
        Meta(
            description="For each target of the holdout, by name, the arm that it would give to"
            " this person."
        ),
    ] = None
    deferred: Annotated[
        bool,
        Meta(
            description="Whether the decision may be cancelled until it is activated. No reward is"
            " taken before that. Decisions of held-out people are active at once."
        ),
    ] = False


class DecisionReply(Message):
    """The reply to a request for a decision."""

    decision_id: str
    token: str
    arm: int
    arm_name: str | None
    propensity: Annotated[
        float | None,
        Meta(
            description="The probability of the arm. It is 1 for most policies, which do not draw"
            " arms at random, and null where it has no closed form."
        ),
    ]
    recorded: Annotated[bool, Meta(description="Whether the policy will learn from the reward.")]
    active: bool
    answer_by: Annotated[str | None, Meta(description="When the deadline of the reward is.")]
    held_out: Annotated[
        bool,
        Meta(
            description="Whether the person is in the holdout, and got an arm by chance. Then the"
            " propensity is the probability given this."
        ),
    ]


class RewardRequest(Message):
    """A reward.  Give ``decision_id`` or ``token``."""

    reward: Annotated[
        float | None,
        Meta(
            description="The reward. Values beyond the range are clipped. null: no reward will"
            " come."
        ),
    ]
    decision_id: DecisionId | None = None
    token: Token | None = None
    arm: Annotated[
        Arm | None,
        Meta(description="The arm that the person took, if not the recommended one."),
    ] = None


class Named(Message):
    """A decision.  Give ``decision_id`` or ``token``."""

    decision_id: DecisionId | None = None
    token: Token | None = None


class RewardReply(Message):
    """Whether the policy learns from a reward.  A second reward for a decision gets this reply,
    too, and changes nothing.
    """

    learned: bool
    why: str | None


class DecisionBatch(Message):
    """Several requests for decisions."""

    decisions: Annotated[list[DecisionRequest], Meta(min_length=1, max_length=MOST_ITEMS)]


class RewardBatch(Message):
    """Several rewards."""

    rewards: Annotated[list[RewardRequest], Meta(min_length=1, max_length=MOST_ITEMS)]


class ReportRequest(Message):
    """The report of a person's device, to which the device has added noise."""

    report_id: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="An id at random. A repeated request with the same id gets the same reply.",
        ),
    ]
    report: list[float]
    unit: Annotated[
        Unit | None,
        Meta(description="The person; of each, max_rounds reports are learned from, or one."),
    ] = None


class ReportReply(Message):
    """Whether the policy learns from a report.  A repeated report gets the same reply."""

    report_id: str
    learned: bool
    why: str | None


class BatchRequest(Message):
    """The output of a shuffler: the people of a batch, without order or identity."""

    batch_id: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="An id at random. A repeated request with the same id gets the same reply.",
        ),
    ]
    label: Annotated[str, Meta(max_length=100, description="Of the round that the batch is of.")]
    sum: Annotated[
        list[Annotated[int, Meta(ge=0)]] | None,
        Meta(description="The sum of all masked parts; null for reports, which have none."),
    ]
    sealed: Annotated[
        list[bytes], Meta(description="What the people sealed, in random order, in base64.")
    ]


class BatchReply(Message):
    """Whether the policy learns from a batch.  A repeated batch gets the same reply."""

    batch_id: str
    learned: bool
    why: str | None


class Round(Message):
    """What devices need for the reports that they send now."""

    label: Annotated[str, Meta(description="Of the reports. It has a digest of the text.")]
    round: Annotated[
        str, Meta(description="Chooser or arm, and protocol or randomiser: JSON, as a text.")
    ]
    public_key: Annotated[
        str | None,
        Meta(description="With which devices seal records, in base64; null without a shuffler."),
    ]


class Because(Message):
    """The reason of what an operator does."""

    reason: Reason


class ArmChange(Message):
    """An arm, and why it is retired or added."""

    arm: Arm
    reason: Reason


class Erasure(Message):
    """The person whose pending data are to be erased."""

    unit: Unit
    reason: Reason


encode = msgspec.json.Encoder().encode
