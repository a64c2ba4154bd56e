"""Placeholder."""

from __future__ import annotations

from ..plans import Plan, Size


def plan(size: Size) -> Plan:
    """Nothing yet."""
    raise NotImplementedError
