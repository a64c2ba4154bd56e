"""Metrics for Prometheus: public quantities alone.

Counts and times of ``/rewards`` are left out, because when rewards come is not public.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

_LABELS = ("tenant", "experiment")
_GAUGES = {
    "decisions": "Decisions, recorded or not.",
    "recorded": "Decisions that the policy learns from.",
    "releases": "Releases of noisy statistics.",
}


def metrics_of(summaries: Iterable[Mapping[str, Any]]) -> tuple[bytes, str]:
    """The metrics of experiments as text, and their media type."""
    registry = CollectorRegistry()
    gauges = {
        name: Gauge(f"dpbandits_{name}", about, _LABELS, registry=registry)
        for name, about in _GAUGES.items()
    }
    running = Gauge("dpbandits_running", "1 while it runs.", _LABELS, registry=registry)
    for one in summaries:
        labels = one["tenant"], one["name"]
        for name, gauge in gauges.items():
            gauge.labels(*labels).set(one[name])
        running.labels(*labels).set(one["status"] == "running")
    return generate_latest(registry), CONTENT_TYPE_LATEST
