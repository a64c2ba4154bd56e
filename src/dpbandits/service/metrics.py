"""Metrics for Prometheus: public quantities alone.

Counts and times of ``/rewards`` are left out, because when rewards come is not public.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

_LABELS = ("tenant", "experiment")
_COUNTERS = {
    "decisions": "Decisions, recorded or not.",
    "recorded": "Decisions that the policy learns from.",
    "releases": "Releases of noisy statistics.",
}


def metrics_of(summaries: Iterable[Mapping[str, Any]]) -> tuple[bytes, str]:
    """The metrics of experiments as text, and their media type."""
    registry = CollectorRegistry()
    counters = {
        name: CounterMetricFamily(f"dpbandits_{name}", about, labels=_LABELS)
        for name, about in _COUNTERS.items()
    }
    registry.register(_Collected(counters.values()))
    running = Gauge("dpbandits_running", "1 while it runs.", _LABELS, registry=registry)
    for one in summaries:
        labels = one["tenant"], one["name"]
        for name, counter in counters.items():
            counter.add_metric(labels, one[name])
        running.labels(*labels).set(one["status"] == "running")
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Collected(Collector):
    """Metrics whose values are known already."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        return self._metrics
