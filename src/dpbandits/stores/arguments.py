"""Arguments of a policy as JSON, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..privacy.budgets import Budget


def arguments(saved: dict[str, Any]) -> dict[str, Any]:
    """Constructor arguments as they were before they became JSON."""
    return {name: _from_json(value) for name, value in saved.items()}


def as_json(value: object) -> object:
    """The JSON form of values without one; ``arguments`` restores budgets, and constructors restore
    parts.
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(
        f"{value!r} cannot be saved: arguments of a saved policy must be numbers, text, lists,"
        " arrays, budgets or parts"
    )


def _from_json(value: Any) -> Any:
    if isinstance(value, dict) and "notion" in value:
        return Budget.from_dict(value)
    return tuple(map(_from_json, value)) if isinstance(value, list) else value
