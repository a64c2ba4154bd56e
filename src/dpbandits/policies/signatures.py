"""Which arguments a policy takes, for ``help``, ``inspect.signature`` and completion: its own, and
one by one those that its constructor takes as ``**options``.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, get_args, get_type_hints

from ..session.options import DEFAULTS


class Signature:
    """``__signature__`` of a class of policies, worked out when somebody asks."""

    def __get__(self, instance: object, cls: Any) -> inspect.Signature:
        return _signature(cls)


@cache
def _signature(cls: Any) -> inspect.Signature:
    _, *own = inspect.signature(cls.__init__).parameters.values()
    declared = get_args(get_type_hints(cls.__init__).get("options"))
    if not declared:
        return inspect.Signature(own)
    defaults = {**DEFAULTS, **cls._options}
    taken = {one.name for one in own}
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind
        )
        for name, kind in get_type_hints(declared[0]).items()
        if name not in taken
    ]
    return inspect.Signature([one for one in own if one.kind is not one.VAR_KEYWORD] + shared)
