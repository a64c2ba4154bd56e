"""The report of the demonstration, as a page that opens offline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..html import Html, items, table, tag
from ..plotting.numbers import duration, number, percent
from ..privacy.meaning import Meaning
from ..report import figures
from ..report.exhibits import Exhibit, Panel, Series
from ..report.page import facts_of, folded, write_page
from ..report.sheet import Sheet
from .comparison import CHANCE, PARTIES, RUNS
from .parties import BATCHES
from .record import Record

_TITLE = "Three parties at work"
_LEAD = (
    "A service, a shuffler and simulated people's devices ran as processes on this machine. The"
    " devices chose arms by private features, and reported through the shuffler. Then a search"
    " went through all that each party had stored."
)
_Rows = tuple[Sequence[str], list[list[str]]]  # heads, and cells


def write(folder: Path, record: Record) -> Path:
    """Write ``report.html`` and its figure into a folder that exists."""
    gallery = folder / "figures"
    gallery.mkdir(exist_ok=True)
    facts = {
        "People": f"{record.people:,}",
        "Batches": f"{BATCHES} of {record.batch:,}",
        "Budget": record.told.summary["budget"],
        "Seed": f"{record.seed}",
        "Took": duration(record.seconds),
    }
    about = [tag("p", _LEAD, class_="lead"), facts_of(facts)]
    sheet = Sheet(gallery, {})
    answer = [_figure(record, sheet), items(_findings(record))]
    head = Html("\n".join([tag("h1", _TITLE), *answer]))
    parts = (
        folded("regret", "Regret beside other trust models", _regret(record)),
        folded("views", "What each party sees, and what that promises", _views(record)),
        folded("search", "The search", _search(record)),
        folded("about", "About this demonstration", about),
    )
    body = Html("\n".join(parts))
    foot = tag("p", "Written by dpbandits.")
    return write_page(folder, _TITLE, head, body, foot, sheet=sheet)


def regrets(record: Record) -> _Rows:
    """Final regrets, as a table."""
    chance = record.regret[CHANCE].final
    rows = []
    for label, curve in record.regret.items():
        ends = curve.low[-1], curve.high[-1]
        band = "" if np.isnan(ends[0]) else " to ".join(number(float(end)) for end in ends)
        rows.append([label, number(curve.final), band, percent(curve.final / chance)])
    return ("trust", "regret", f"of {RUNS} runs", "of chance"), rows


def findings(record: Record) -> _Rows:
    """What the search has found, as a table."""
    heads = ("what", "needles", "people", "in the list", "on devices", "service", "shuffler")
    return heads, [[one.kind, *(f"{count:,}" for count in one[1:])] for one in record.found]


def verdict(record: Record) -> Iterator[str]:
    """What the search says, in sentences."""
    if not record.leaks:
        yield "The search has found nothing that the service or the shuffler must not know."
    for one in record.leaks:
        told = {"service": one.service, "shuffler": one.shuffler}
        where = " and ".join(f"the {party}" for party, count in told.items() if count)
        yield f"LEAK: {where} stored {one.kind} of people."
    for one in record.blind:
        yield f"The search is blind: it missed {one.kind} that were in its own list."
    if not record.blind:
        yield "It has found everything in a list that holds all of it."


def _findings(record: Record) -> list[str]:
    own, chance = record.regret[PARTIES].final, record.regret[CHANCE].final
    learned = f"The regret of the three processes was {percent(own / chance)} of that of chance."
    return [*verdict(record), learned]


def _figure(record: Record, sheet: Sheet) -> Html:
    series = [
        Series(label, record.ends, *curve, dashed=label == CHANCE)
        for label, curve in record.regret.items()
    ]
    panel = Panel("", "people", "regret", series, x_scale="linear", y_scale="log")
    alt = "; ".join(f"{row[0]}: {row[1]}" for row in regrets(record)[1])
    shown = Exhibit("regret", "", "", f"Final regrets: {alt}.", [panel])
    caption = (
        "Regret after each batch, on a logarithmic axis. The processes ran once. Simulations are"
        f" means of {RUNS} runs, and their bands hold all of these."
    )
    draw = partial(figures.exhibit, shown, list(record.regret))
    return sheet.figure(shown.name, "Regret beside other trust models", draw, shown.alt, caption)


def _regret(record: Record) -> Iterator[Html]:
    heads, rows = regrets(record)
    what = (
        "All played with the same people, the same budget and batches of the same size. Central"
        " trust means that the service sees every record. Local trust means that each report has"
        " the noise of the whole budget."
    )
    yield table(what, heads, [(first, [rest]) for first, *rest in rows])


def _views(record: Record) -> Iterator[Html]:
    budget = record.told.summary["budget"]
    rows = {
        "The service": [
            f"{BATCHES} sums with noise, and sealed numbers that are uniform",
            f"{budget}",
        ],
        "The shuffler": [
            "tickets, numbers that are uniform, and sealed bytes",
            "nothing about features, arms and rewards, while nobody breaks the seal (HPKE)",
        ],
        "Both, if they conspire": [
            "each person's message, with the noise of this person alone",
            f"{record.alone}",
        ],
        "Each device": ["its person's record, and what the service releases", f"{budget}"],
    }
    heads = ("party", "sees", "others' records are protected by")
    caption = "The views of the parties."
    yield table(caption, heads, [(name, [row]) for name, row in rows.items()], (1, 2))
    yield tag("p", record.told.guarantee["in_words"])
    yield tag("p", f"If both conspire: {Meaning.of(record.alone).sentence('record')}")
    yield tag("h3", "The ledger of the service")
    ledger = record.told.ledger
    yield tag("p", f"Spent, of each person: {ledger['spent']}. A person is in one batch.")
    columns = ("rounds", "releases", "noise", "scale", "cost")
    lines = [
        (f"{one['first']:,} to {one['last']:,}", [[_shown(one[name]) for name in columns[1:]]])
        for one in ledger["lines"]
    ]
    yield table("Releases of the service.", columns, lines)
    yield tag("p", "The shuffler has no ledger of its own: it counts the batches of each user.")


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:,.6g}"


def _search(record: Record) -> Iterator[Html]:
    yield tag(
        "p",
        "The search looked for needles in state folders, databases with their logs, outputs that"
        " wait, keys, declarations, logs and names of files. It did so in the middle of a batch,"
        " after the last batch, and when the processes had ended. What the service seals in its"
        " store was opened with its keys.",
    )
    heads, rows = findings(record)
    what = (
        "Numbers of people whose needles were found. Arms count in rows of 16 people who came one"
        " after the other. The list was written by this program, and holds everything. Devices"
        " keep a diary of their person, and delete a message once it has arrived."
    )
    yield table(what, heads, [(first, [rest]) for first, *rest in rows])
    yield items(
        [
            "Numbers: ten decimals as text, and float64. Features, and rewards beside a feature,"
            " also as pairs of float32: the four bytes of one number occur by chance.",
            "Messages and masked parts: all integers of one, as text, as int64, and as devices"
            " pack them.",
            "Names: as text, and as tickets have them. Tickets: as text.",
            f"In the middle of a batch the shuffler held {record.open_parts:,} masked parts, one"
            " for each person who had come. It may: these are uniform, and deleted when the batch"
            " closes.",
            "The search does not look into memory, nor into compressed data.",
        ]
    )
