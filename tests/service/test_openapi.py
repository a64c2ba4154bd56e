"""Requests that follow the OpenAPI document, and some that do not, get replies that follow it."""

import copy
import re

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from people import LOCAL
from schemathesis import GenerationMode
from schemathesis.checks import positive_data_acceptance
from services import ARMS

from dpbandits.service.app import make_app
from dpbandits.service.openapi import document


def without_keys(told):
    """The document of a service that asks for no keys."""
    told = copy.deepcopy(told)
    for calls in told["paths"].values():
        for call in calls.values():
            call.pop("security", None)
    return told


SCHEMA = schemathesis.openapi.from_dict(without_keys(document()))
OPERATIONS = {one.ok().label: one.ok() for one in SCHEMA.get_all_operations()}
# What is well written may name unknown decisions, arms or words.
LEFT = [positive_data_acceptance]
UNKNOWN = (
    "/rewards",
    "/reports",
    "/batches",
    "/activate",
    "/cancel",
    "POST /v1/experiments",
    "DELETE /v1/experiments/{name}",
)
DEVICES = ("/randomiser", "/config", "/reports", "/batches")
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
FEW = settings(
    max_examples=12,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("label", OPERATIONS)
def test_replies_follow_the_document(served, label):
    served.declare(**ARMS).decide(decision_id="one")
    operation, statuses = OPERATIONS[label], set()
    name = "devices" if label.endswith(DEVICES) else "trial"
    if name == "devices":
        served.declare(name=name, **LOCAL)
    named = {"path_parameters": {"name": name}} if "{name}" in label else {}

    for mode in MODES:
        if mode is GenerationMode.NEGATIVE and not operation.body:
            continue  # nothing could be wrong

        @FEW
        @given(case=operation.as_strategy(mode, **named))
        def check(case):
            sent = case.as_transport_kwargs(base_url="http://127.0.0.1")
            reply = served.http.request(**{name: sent[name] for name in sent if name in TAKEN})
            assert reply.status_code < 500, reply.text
            case.validate_response(reply, excluded_checks=LEFT)
            statuses.add(reply.status_code)

        check()
    assert label.endswith(UNKNOWN) or statuses & {200, 202}, statuses


TAKEN = {"method", "url", "headers", "json", "content", "params"}


def test_the_document_has_every_address(served):
    told = {
        (path, method.upper()) for path, calls in document()["paths"].items() for method in calls
    }
    routes = {
        (route.path, method)
        for route in make_app(served.service).routes
        for method in route.methods - {"HEAD", "OPTIONS"}
        if re.match("/v1|/healthz|/readyz|/metrics", route.path)
    }
    assert routes <= told
    assert served.http.get("/openapi.json").json() == document()
