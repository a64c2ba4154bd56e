"""Looks of figures: for pages, and for the columns of papers."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import ArgumentError

PAPER, INK, SOFT = "#ffffff", "#1f2933", "#52606d"

# DejaVu Sans comes with matplotlib: the figures are the same on every machine, whatever fonts it
# has.
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": "#9aa5b1",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "path",
    "svg.hashsalt": "dpbandits",
    "pdf.fonttype": 42,  # TrueType, as publishers ask
    "pgf.rcfonts": False,  # the fonts of the document
    "pgf.texsystem": "pdflatex",
}

# STIX comes with matplotlib, too, and looks like Times.
_PRINT: Any = STYLE | {
    "font.family": "STIXGeneral",
    "font.size": 8,
    "mathtext.fontset": "stix",
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.labelcolor": "#000000",
    "axes.edgecolor": "#52606d",
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.5,
    "text.color": "#000000",
    "xtick.color": "#000000",
    "ytick.color": "#000000",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
}


class Look(NamedTuple):
    """A width in inches, and settings of matplotlib."""

    width: float
    settings: Any


WIDE, NARROW = 9.6, 3.75  # inches: the column of the page at a desk and on a phone
_INCH = 72.27  # points of TeX

# Columns as IEEEtran, acmart (sigconf) and the style of NeurIPS set them; "wide" is a whole page.
LOOKS = {
    "page": Look(WIDE, STYLE),
    "ieee": Look(252.0 / _INCH, _PRINT),
    "ieee-wide": Look(516.0 / _INCH, _PRINT),
    "acm": Look(241.147 / _INCH, _PRINT),
    "acm-wide": Look(506.295 / _INCH, _PRINT),
    "neurips": Look(397.485 / _INCH, _PRINT),
}


def look_of(style: str) -> Look:
    """The look of this name.

    Raises:
        ArgumentError: there is none.
    """
    if style not in LOOKS:
        raise ArgumentError(f"style must be one of {', '.join(LOOKS)}, got {style!r}")
    return LOOKS[style]
