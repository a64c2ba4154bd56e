"""Pages for operators."""

from __future__ import annotations

from typing import Any


def routes_of(service: Any) -> list[Any]:
    """The addresses of pages."""
    return []
