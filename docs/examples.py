"""How the reference reads docstrings: our sections "Example:" are what others call "Examples:"."""

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Doctests are shown as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section before it is parsed."""
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE
            )
