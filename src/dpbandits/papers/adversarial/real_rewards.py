"""Real rewards in the order of time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...environments import DoctorReplay, RewardTable, lastfm, movielens
from ...errors import ArgumentError
from ...policies import Policy
from ...report.claims import Claim, Expectation
from ...report.exhibits import Exhibit, Panel, Series
from ...report.intervals import Ratio, curve, mean, ratio
from ..plans import Findings, Results, Size, cells_of, measured, spoken
from .policies import TsallisINF
from .section import EVERY, Section, runs_of
from .worst_case import LEARNERS, Setting

REAL_EPSILONS = (0.1, 1.0)

REAL = "Real rewards"


def real(size: Size) -> Section:
    """The trial, and the data sets in a folder."""
    tables = reward_tables(size.data)
    horizons = {
        name: min(table.horizon, size.horizon or table.horizon) for name, table in tables.items()
    }
    cells, runs = [], runs_of(size)
    for name, table in tables.items():
        key, place = f"real/{name}/{{}}".format, [(size.seed, table)]
        cells += cells_of(key, REAL, _on_real(table), place, horizons[name], runs)

    def assess(results: Results) -> Findings:
        claims = []
        for name, table in tables.items():
            claims += _real_claims(name, table, horizons[name], results)
        return Findings(claims, [_real_figure(tables, results)])

    notes = []
    if size.data is None:
        notes.append(
            "MovieLens and Last.fm were left out: --data names a folder with their files, or one"
            " that holds such folders."
        )
    return Section(cells, assess, notes, [repr(table) for table in tables.values()])


def reward_tables(data: Path | None) -> dict[str, RewardTable]:
    """The trial, and the data sets in a folder."""
    tables = {"ACTG 175": DoctorReplay().reward_table()}
    if data is None:
        return tables
    folders = [data, *sorted(data.iterdir())] if data.is_dir() else []
    for name, file, read in (
        ("MovieLens", "u.data", lambda folder: movielens(folder).reward_table()),
        ("Last.fm", "user_taggedartists.dat", lambda folder: lastfm(folder).reward_table()),
    ):
        holding = [folder for folder in folders if (folder / file).is_file()]
        if holding:
            tables[name] = read(holding[0])
    if len(tables) == 1:
        raise ArgumentError(
            "data must name a folder with the files of MovieLens or Last.fm, or one that holds"
            f" such folders, got {data}"
        )
    return tables


def _on_real(table: RewardTable) -> dict[str, Policy]:
    def policy(name: str, epsilon: float, batch: int | None = None) -> Policy:
        return Setting(name, table.horizon, table.n_arms, epsilon, batch).policy()

    found = {
        f"{name}/{epsilon:g}": policy(name, epsilon)
        for name in LEARNERS
        for epsilon in REAL_EPSILONS
    }
    found |= {f"{name}/every": policy(name, REAL_EPSILONS[0], 1) for name in ("EXP3", "HTINF")}
    return {**found, "open": TsallisINF(table.n_arms)}


def _real_claims(name: str, table: RewardTable, horizon: int, results: Results) -> list[Claim]:
    strict = REAL_EPSILONS[0]

    def final(key: str) -> np.ndarray:
        return results.final(f"real/{name}/{key}")

    uniform = float(table.means().max() - table.means().mean()) * horizon
    after = f"after {spoken(horizon)} rounds"
    return [
        *(
            Claim(
                f"{name}: {learner} in batches has less regret than with noise on every reward at ε"
                f" = {strict:g}. Measured: the ratio {after}.",
                "this package",
                REAL,
                measured([final(f"{learner}/{strict:g}"), final(f"{learner}/every")], ratio),
                Expectation(high=1.0, strict=True),
            )
            for learner in ("EXP3", "HTINF")
        ),
        *(
            Claim(
                f"{name}: HTINF learns something at ε = {epsilon:g}. Measured: its regret over that"
                f" of playing all arms alike {after}.",
                "this package",
                REAL,
                measured(
                    [final(f"HTINF/{epsilon:g}")], Ratio(lambda means: means[..., 0] / uniform)
                ),
                Expectation(high=1.0, strict=True),
            )
            for epsilon in REAL_EPSILONS
        ),
    ]


def _real_figure(tables: dict[str, RewardTable], results: Results) -> Exhibit:
    strict, loose = REAL_EPSILONS
    shown = {name: f"{name}/{strict:g}" for name in LEARNERS}
    shown |= {EVERY.format(name): f"{name}/every" for name in ("EXP3", "HTINF")}
    shown |= {f"HTINF, ε = {loose:g}": f"HTINF/{loose:g}", "Tsallis-INF, not private": "open"}
    panels = []
    for name, table in tables.items():
        rounds, lines = results.rounds(f"real/{name}/open"), []
        for label, key in shown.items():
            found = curve([results.curves(f"real/{name}/{key}")], mean)
            lines.append(Series(label, rounds, *found, dashed=key == "open"))
        title = f"{name}, {table.n_arms} arms"
        panels.append(Panel(title, "rounds", "mean regret", lines, x_scale="linear"))
    return Exhibit(
        "figure-real",
        "Real rewards in the order of time",
        f"Mean regret against the best arm of all rounds, with 95 % bands, at ε = {strict:g} unless"
        " said otherwise. ACTG 175: treatments, for patients in the order of their numbers."
        " MovieLens: genres, for ratings in the order of time. Last.fm: artists, for visits in the"
        " order of time.",
        f"Regret over rounds on {', '.join(tables)}.",
        panels,
    )
