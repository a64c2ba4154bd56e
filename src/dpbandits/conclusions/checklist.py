"""The checklist for reports of randomised trials with an adaptive design, as far as a policy can
fill it in.

It is ACE, the extension of CONSORT 2010 for adaptive designs (Dimairo et al. 2020, BMJ 369:m115),
in our words.
"""

from __future__ import annotations

from typing import NamedTuple

BY_HAND = "add by hand"
SOURCE = (
    "Items of ACE, the extension of CONSORT 2010 for adaptive designs (Dimairo et al. 2020, BMJ"
    " 369:m115), in the words of this package. Journals want its original."
)


class Item(NamedTuple):
    """An item of the checklist.

    Attributes:
        number: in ACE.
        asks: for what.
        here: where this report has it, or how far; ``BY_HAND`` where nothing of it is here.
    """

    number: str
    asks: str
    here: str = BY_HAND


def checklist(
    *, drawn: bool, releases: int | None, counts: str, losses: str, end: str, has_intervals: bool
) -> list[Item]:
    """All items, with sentences on a trial where it differs from others.

    Args:
        drawn: whether the policy draws arms at random.
        releases: how many there were; None where the report does not tell.
        counts: on people of each arm.
        losses: on answers that are missing.
        end: on why the trial ended.
        has_intervals: whether there are intervals.
    """
    tried = "see 'What was tried'"
    results = "see 'Means' and 'Differences'" if has_intervals else "no interval is proved"
    looks = "every release" if releases is None else f"each of {releases:,} releases"
    allocation = (
        f"{tried}: arms are drawn at random"
        if drawn
        else f"{tried}: no arm is drawn at random, so do not call the trial randomised"
    )
    return [
        Item("1", "title; abstract with the design and its adaptations"),
        Item("2", "background, objectives"),
        Item("3a", "design, allocation ratio", f"{tried}: there is no fixed ratio"),
        Item("3b", "the type of adaptive design and its planned adaptations", tried),
        Item("3c", "changes of the design that were not planned"),
        Item("4", "eligibility, settings"),
        Item("5", "interventions: say what each arm was"),
        Item("6", "outcomes: say what the reward measured, and when"),
        Item("7a", "sample size and operating characteristics", "add by hand: dpb.plan helps"),
        Item(
            "7b",
            "rules, times and number of interim looks",
            f"the policy looked at {looks}; add your own rules to stop",
        ),
        Item("8", "how arms were allocated, and updates of the rule", allocation),
        Item("9, 10", "concealment and implementation of the allocation"),
        Item("11", "blinding; how interim results were kept confidential"),
        Item("12a, b", "methods for differences, valid under adaptation", results),
        Item("12c", "additional analyses"),
        Item("13a", "numbers of people in each arm", counts),
        Item("13b", "losses and exclusions", losses),
        Item("14a", "dates: the policy keeps none"),
        Item("14b, c", "why the trial ended; adaptations that were made", end),
        Item("15", "baseline data; whether people changed during the trial"),
        Item("16", "numbers analysed", counts),
        Item("17a, b", "results of each arm, differences, and their precision", results),
        Item(
            "17c",
            "interim results that were used",
            "policy.released_sums" if has_intervals else "policy.estimates",
        ),
        Item("18, 19", "ancillary analyses, harms"),
        Item("20", "limitations", "see 'What breaks the intervals'; add yours"),
        Item("21, 22", "generalisability, interpretation"),
        Item("23 to 25", "registration, protocol, analysis plan, funding"),
    ]
