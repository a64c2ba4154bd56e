"""The shapes of replies that are made of views, as JSON schemas for the OpenAPI document."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
_PREFIX = "#/components/schemas/"


def ref(name: str) -> Schema:
    """The schema of that name."""
    return {"$ref": _PREFIX + name}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _object(about: str, **properties: Schema) -> Schema:
    """An object that has all of these members."""
    return {
        "type": "object",
        "description": about,
        "required": list(properties),
        "properties": properties,
    }


def _told(schema: Schema, about: str) -> Schema:
    return {**schema, "description": about}


_TEXT, _WHOLE, _NUMBER, _FLAG = (
    {"type": one} for one in ("string", "integer", "number", "boolean")
)
_ARM = {"type": ["string", "integer"]}
_NUMBERS = _list(_or_null(_NUMBER))
_TIME = _or_null({"type": "string", "format": "date-time"})

PROBLEM = _object(
    "A refusal, or a failure (RFC 9457).",
    type=_told(_TEXT, "A word, by which programs tell problems apart."),
    title=_TEXT,
    status=_WHOLE,
    detail=_told(_TEXT, "A sentence."),
)
PROBLEM["properties"] |= {
    "word": _told(_or_null(_TEXT), "The member of the body that is wrong."),
    "errors": _told(_list(_object("A mistake.", word=_TEXT, detail=_TEXT)), "All mistakes."),
    "retry_after": _told(_NUMBER, "Seconds until the next try may succeed."),
}


def _results(of: str) -> Schema:
    failed = _object("An item that failed.", status=_WHOLE, problem=ref("Problem"))
    results = _list({"anyOf": [ref(of), failed]})
    return _object("A result for each item, in their order.", results=results)


def item(reply: Schema) -> Schema:
    """The schema of a reply within a batch, where it has its status beside it."""
    return {
        **reply,
        "required": [*reply["required"], "status"],
        "properties": {**reply["properties"], "status": _WHOLE},
    }


_VERDICT = _object(
    "Whether it is decided which arm is best.",
    decided=_FLAG,
    words=_told(_TEXT, "The answer in plain words."),
    arm=_told(_or_null(_WHOLE), "The number of the arm that leads; null before a release."),
    name=_told(_TEXT, "Of that arm."),
    gap=_told(_NUMBER, "No other mean is higher by so much, if it is decided; here 0."),
    least_gap=_told(_or_null(_NUMBER), "With every larger gap it is decided by now."),
    intervals=_told(_list({"type": "object"}), "Of the arm, less the best of the others."),
    breaks=_told(_list(_TEXT), "What the answer does not cover."),
)

SHAPES: dict[str, Schema] = {
    "Problem": PROBLEM,
    "Ledger": _object(
        "Lines of the ledger.",
        spent=_told(_or_null(_TEXT), "The privacy loss so far, in words; null without a budget."),
        total=_told(_WHOLE, "How many lines there are."),
        first=_told(_WHOLE, "The number of the first line of this reply, from 0."),
        lines=_list(
            _object(
                "Releases that follow each other, and are alike.",
                first=_told(_WHOLE, "The first recorded round that they cover, from 0."),
                last=_told(_WHOLE, "The last one."),
                part=_told(_or_null(_WHOLE), "The arm whose rounds they cover; null: all."),
                releases=_WHOLE,
                noise=_told(_TEXT, "Its law."),
                sensitivity=_NUMBER,
                scale=_told(_or_null(_NUMBER), "Of the noise; null where it is of another law."),
                cost=_told(_or_null(_NUMBER), "In the budget's currency; null: unlimited."),
            )
        ),
    ),
    "Estimates": _object(
        "Estimates from released values. A list has a place for each arm; null: there is none.",
        releases=_WHOLE,
        reason=_told(_or_null(_TEXT), "Why there are none."),
        arms=_list(_ARM),
        means=_or_null(_NUMBERS),
        errors=_or_null(_NUMBERS),
        low=_told(_or_null(_NUMBERS), "Ends of intervals of 95 %, for all releases together."),
        high=_or_null(_NUMBERS),
        rounds=_or_null(_NUMBERS),
        alive=_told(_or_null(_list(_FLAG)), "Whether an arm is still in the search."),
        coefficients=_told(_or_null({"type": "array"}), "Of the model, or of each model."),
        breaks=_told(_list(_TEXT), "What the intervals do not cover."),
        decided=_or_null(_VERDICT),
    ),
    "Guarantee": _object(
        "The guarantee, and its assumptions.",
        in_words=_told(_TEXT, "In sentences."),
        holds=_told(_or_null({"type": "object"}), "The budget that holds; null: none."),
        simulated=_told(_FLAG, "Whether it protects nobody."),
        assumptions=_list(_TEXT),
    ),
    "Trail": _object(
        "What operators did, and why.",
        lines=_list(_object("An act.", at=_TEXT, who=_TEXT, what=_TEXT, reason=_TEXT)),
    ),
    "Summary": {
        "type": "object",
        "description": "An experiment at a glance. One that starts, or could not be made, has only"
        " its name, status and detail.",
        "required": ["name", "status"],
        "properties": {
            "name": _TEXT,
            "title": _or_null(_TEXT),
            "status": _told(_TEXT, "running, paused, archived, starting or failed."),
            "detail": _or_null(_TEXT),
            "arms": _list(_ARM),
            "retired": _list(_ARM),
            "baseline": _or_null(_ARM),
            "finishes": _TIME,
            "finished": _TIME,
            "budget": _or_null(_TEXT),
            "spent": _or_null(_TEXT),
            "simulated": _FLAG,
            "releases": _WHOLE,
            "decisions": _told(_WHOLE, "That the policy has made, recorded or not."),
            "recorded": _told(_WHOLE, "Those of them that were recorded."),
            "stopped": _FLAG,
        },
    },
    "Experiments": _object("All that the key covers.", experiments=_list(ref("Summary"))),
    "DecisionResults": _results("DecisionItem"),
    "RewardResults": _results("RewardItem"),
    "Declaration": {
        "type": "object",
        "description": "The words of dpbandits.bandit, or with `kind` those of a study file, and"
        " those of the service.",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,39}$"},
            "title": _TEXT,
            "kind": _told(_TEXT, "The name of a policy."),
            "arms": _told({"type": ["integer", "array"]}, "How many, or their names."),
            "budget": _told(_or_null({"type": "object"}), 'Such as {"zcdp": 0.5}.'),
            "answers_within": _told({"type": ["string", "integer"]}, 'Such as "1h".'),
            "baseline": _ARM,
            "starts": _TEXT,
            "ends": _TEXT,
            "breaker": {"type": "object"},
            "retries_for": _told(_TEXT, "How long a repeated request is recognised."),
            "public": _FLAG,
            "origins": _list(_TEXT),
            "allow_simulation": _FLAG,
        },
    },
}
