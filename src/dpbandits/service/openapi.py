"""The description of the service that programs read: OpenAPI 3.1, from the types of messages."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec

from .. import __version__
from . import messages as m
from .shapes import SHAPES, item, ref

_INTRO = """Private decisions. Ask for a decision, serve the arm, and send the reward until the
deadline `answer_by`.

* Requests may be repeated. A request for a decision with the same `decision_id` and body gets the
  same reply. A second reward for a decision changes nothing.
* Status 503 and 429 mean: send the same request again, after `Retry-After` seconds.
* Replies do not depend on rewards before noise was added to them.
* `propensity` is 1 or null for most policies, which do not draw arms at random.
* Errors are problem details (RFC 9457): `type` is a word, `detail` a sentence.
"""


class _Call(NamedTuple):
    """An address and a method."""

    path: str
    method: str
    summary: str
    role: str
    body: Any = None
    reply: Any = None
    status: int = 200


_ONE = "/v1/experiments/{name}"
_CALLS = (
    _Call(
        f"{_ONE}/decisions",
        "post",
        "Ask for a decision.",
        "decide",
        m.DecisionRequest,
        m.DecisionReply,
    ),
    _Call(
        f"{_ONE}/decisions/batch",
        "post",
        "Ask for several decisions. Each may fail alone.",
        "decide",
        m.DecisionBatch,
        "DecisionResults",
    ),
    _Call(
        f"{_ONE}/rewards",
        "post",
        "Send the reward of a decision.",
        "reward",
        m.RewardRequest,
        m.RewardReply,
        202,
    ),
    _Call(
        f"{_ONE}/rewards/batch",
        "post",
        "Send several rewards. Each may fail alone.",
        "reward",
        m.RewardBatch,
        "RewardResults",
    ),
    _Call(
        f"{_ONE}/activate",
        "post",
        "A deferred decision was carried out.",
        "decide",
        m.Named,
        m.RewardReply,
    ),
    _Call(
        f"{_ONE}/cancel",
        "post",
        "A deferred decision was not carried out.",
        "decide",
        m.Named,
        m.RewardReply,
    ),
    _Call(
        f"{_ONE}/randomiser",
        "get",
        "What devices need for the reports that they send now. Without a key, if the experiment is"
        " public.",
        "read",
        None,
        m.Round,
    ),
    _Call(f"{_ONE}/config", "get", "What a device is shipped with, and trusts.", "read"),
    _Call(
        f"{_ONE}/reports",
        "post",
        "Send the report of a device, which chose the arm, under local trust.",
        "report",
        m.ReportRequest,
        m.ReportReply,
        202,
    ),
    _Call(
        f"{_ONE}/batches",
        "post",
        "Send the output of a shuffler.",
        "shuffle",
        m.BatchRequest,
        m.BatchReply,
        202,
    ),
    _Call("/v1/experiments", "get", "List experiments.", "read", None, "Experiments"),
    _Call(
        "/v1/experiments",
        "post",
        "Declare an experiment, in the words of dpbandits.bandit.",
        "admin",
        "Declaration",
        "Summary",
        202,
    ),
    _Call(_ONE, "get", "An experiment at a glance.", "read", None, "Summary"),
    _Call(_ONE, "delete", "Forget an experiment that could not be made.", "admin"),
    _Call(f"{_ONE}/ledger", "get", "Releases and their privacy loss.", "read", None, "Ledger"),
    _Call(
        f"{_ONE}/guarantee",
        "get",
        "The guarantee: protected data, and assumptions.",
        "read",
        None,
        "Guarantee",
    ),
    _Call(
        f"{_ONE}/card",
        "get",
        "The privacy card: Markdown, or HTML with `Accept: text/html`.",
        "read",
    ),
    _Call(f"{_ONE}/estimates", "get", "Estimates from released values.", "read", None, "Estimates"),
    _Call(f"{_ONE}/chooser", "get", "The public half of the policy.", "read"),
    _Call(f"{_ONE}/trail", "get", "What operators did, and why.", "admin", None, "Trail"),
    _Call(f"{_ONE}/pause", "post", "Serve the baseline, and record nothing.", "admin", m.Because),
    _Call(
        f"{_ONE}/resume",
        "post",
        "Go on after a pause, or after the breaker has tripped.",
        "admin",
        m.Because,
    ),
    _Call(
        f"{_ONE}/archive",
        "post",
        "Make no more decisions, take rewards until their deadlines, then finish for good.",
        "admin",
        m.Because,
    ),
    _Call(f"{_ONE}/retire", "post", "Serve an arm no more.", "admin", m.ArmChange),
    _Call(f"{_ONE}/add", "post", "Serve a retired arm again.", "admin", m.ArmChange),
    _Call(f"{_ONE}/erase", "post", "Erase the pending data of a person.", "admin", m.Erasure),
    _Call("/healthz", "get", "Whether the service is alive.", ""),
    _Call("/readyz", "get", "Whether all declared experiments are ready.", ""),
    _Call("/metrics", "get", "Public quantities for Prometheus.", "read"),
)

_COUNT = {"type": "integer", "minimum": 0, "maximum": 10_000}
_OF_LEDGER = {
    "first": "The number of the first line, from 0.",
    "count": "How many lines; by default, and at most, 10,000.",
}


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    named = {one for call in _CALLS for one in (call.body, call.reply) if isinstance(one, type)}
    structs = sorted((one for one in named if issubclass(one, m.Message)), key=lambda t: t.__name__)
    _, schemas = msgspec.json.schema_components(structs, ref_template=ref("{name}")["$ref"])
    schemas |= SHAPES
    for name in ("Decision", "Reward"):
        schemas[f"{name}Item"] = item(schemas[f"{name}Reply"])
    paths: dict[str, dict[str, Any]] = {}
    for call in _CALLS:
        paths.setdefault(call.path, {})[call.method] = _operation(call)
    return {
        "openapi": "3.1.0",
        "info": {"title": "dpbandits", "version": __version__, "description": _INTRO},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(call: _Call) -> dict[str, Any]:
    told: dict[str, Any] = {
        "summary": call.summary,
        "operationId": _id(call),
        "responses": {
            str(call.status): {"description": "Done.", **_content(call.reply)},
            "default": {
                "description": "A problem.",
                "content": {"application/problem+json": {"schema": ref("Problem")}},
            },
        },
    }
    if call.role:
        told["security"] = [{"key": []}]
        told["description"] = f"Needs a key with the role `{call.role}`."
    if "{name}" in call.path:
        named = {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,39}$"}
        told["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": named}]
    if call.path.endswith("/ledger"):
        told["parameters"] += [
            {"name": name, "in": "query", "description": about, "schema": _COUNT}
            for name, about in _OF_LEDGER.items()
        ]
    if call.path.endswith("/card"):
        told["responses"]["200"]["content"] = {
            kind: {"schema": {"type": "string"}} for kind in ("text/markdown", "text/html")
        }
    if call.body is not None:
        told["requestBody"] = {"required": True, **_content(call.body)}
    return told


def _id(call: _Call) -> str:
    last = call.path.replace("/v1", "").replace("{name}", "one")
    return call.method + last.replace("/", "_").replace(".", "_")


def _content(kind: Any) -> dict[str, Any]:
    if kind is None:
        return {}
    schema = ref(kind if isinstance(kind, str) else kind.__name__)
    return {"content": {"application/json": {"schema": schema}}}
