"""How the reference reads docstrings: our sections "Example:" are what others call "Examples:"."""

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Doctests are shown as code, and names that share a line as names."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the text before it is parsed."""
        if obj.docstring:
            text = re.sub(
                r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE
            )
            # Without such a section they would be quotes of quotes, and lists in them links.
            text = re.sub(r"^>>> .*(?:\n.+)*", r"```pycon\n\g<0>\n```", text, flags=re.MULTILINE)
            # "a, b: ..." are two names; after this space b is not taken for the type of a.
            obj.docstring.value = re.sub(
                r"^    \w+(?:, \w+)+(?=:)",
                lambda names: names[0].replace(", ", ",\N{NO-BREAK SPACE}"),
                text,
                flags=re.MULTILINE,
            )
