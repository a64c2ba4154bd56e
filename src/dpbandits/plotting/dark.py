"""Dark screens: SVG figures that take the colours of the page that shows them.

Figures are drawn once, in colours for white paper.  Rules in the SVG change them where the page, or
the system, prefers dark colours.  Other programs ignore these rules.
"""

from __future__ import annotations

from .styles import COLOURS

# Each at least 4 times as bright as the dark page, or as dim; policies in the order of their marks.
_POLICIES = (
    *("#3d9be0", "#f0803c", "#1fbf8f", "#d68bd0", "#8f86f2", "#e0ae2e"),
    *("#a9ddfb", "#c9527f", "#a7b0ba", "#b4d130", "#ff7ac0", "#c08a72"),
)
_OTHERS = {
    "#ffffff": "#161b22",  # paper
    "#000000": "#e4e7eb",
    "#1f2933": "#e4e7eb",  # ink
    "#52606d": "#9fb0c0",
    "#9aa5b1": "#65758a",
    "#e4e7eb": "#2d3742",  # grids
}
DARK = _OTHERS | dict(zip((one.lower() for one in COLOURS), _POLICIES, strict=True))


def with_dark_colours(svg: bytes) -> bytes:
    """An SVG of matplotlib with dark colours for dark screens beside its own."""
    drawn = svg.decode()
    rules = [
        f'[style*="{name}: {light}"]{{{name}:{dark}!important}}'
        for light, dark in DARK.items()
        for name in ("fill", "stroke")
        if f"{name}: {light}" in drawn
    ]
    rules.append(f"svg{{fill:{DARK['#000000']}}}")  # black is left out, as the usual colour
    style = f"@media (prefers-color-scheme: dark){{{''.join(rules)}}}</style>"
    return drawn.replace("</style>", style, 1).encode()
