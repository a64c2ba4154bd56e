"""``write``: a study as one HTML page that opens offline, with its figures beside it as files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from . import claims, figures
from .findings import in_people, in_regret, meaning, of_row, on_clipping
from .guarantees import cards, marks, simulated, stamp
from .html import Html, items, picture, table, tag, text
from .labels import (
    NO_PRIVACY,
    Look,
    amount,
    level,
    looks,
    more_or_fewer,
    number,
    per_thousand,
    percent,
    promised,
    seconds,
)
from .record import StudyRecord
from .replays import Trial, in_words, trials
from .scenes import Estimate, Scene, scenes

_DASH = "A dash: no two runs differ, or the interval is narrower than the digits shown."
_ALL = percent(1.0, 1)
_CURRENCIES = {"pure": "ε", "zcdp": "ρ", "rdp": "ε", "gdp": "μ²"}


def write(folder: str | Path, record: StudyRecord) -> Path:
    """Write ``report.html`` and ``figures/*.svg|png`` into a folder that exists.

    Equal records give equal bytes.

    Returns:
        The path of the page.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    folder = Path(folder)
    page = _Page(folder / "figures", record)
    page.gallery.mkdir(exist_ok=True)
    source = files(__package__)
    template = Template(source.joinpath("page.html").read_text("utf-8"))
    style = source.joinpath("style.css").read_text("utf-8")
    html = template.substitute(
        title=text(record.title), style=style, head=page.head(), body=page.body(), foot=page.foot()
    )
    path = folder / "report.html"
    path.write_text(html, "utf-8")
    return path


class _Page:
    """One page in the making."""

    def __init__(self, gallery: Path, record: StudyRecord) -> None:
        self.gallery, self.record, self.result = gallery, record, record.detailed
        self.policies: list[dict[str, Any]] = self.result.info.get("policies", [])
        self.scenes = scenes(self.result)
        self.trials = [] if record.replay is None else list(trials(record.replay, self.scenes))
        self.looks = looks(self.result.runs["policy"].drop_duplicates(), marks(self.policies))

    # The frame -------------------------------------------------------------------------------

    def head(self) -> Html:
        runs = self.result.runs.groupby(["environment", "policy", "budget"]).size()
        horizons = sorted({scene.horizon for scene in self.scenes})
        facts = {
            "Policies": str(len({look.label for look in self.looks.values()})),
            "Budgets": str(
                self.result.runs["budget"].drop_duplicates().map(lambda b: level(b).private).sum()
            ),
            "Runs of each": _span(int(runs.min()), int(runs.max())),
            "People per run": _span(horizons[0], horizons[-1]),
            "Seed": str(self.record.seed),
        }
        parts = [tag("h1", self.record.title)]
        if self.record.description:
            parts.append(tag("p", self.record.description, class_="lead"))
        parts.append(
            tag(
                "dl",
                *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()),
                class_="facts",
            )
        )
        if any(simulated(entry) for entry in self.policies):
            parts.append(stamp())
        return Html("\n".join([*parts, self._contents()]))

    def _contents(self) -> Html:
        links = {"claims": "Claims"} if self.record.claims else {}
        if self.record.exhibits:
            links["exhibits"] = "Figures to the claims"
        links |= {
            "findings": "Main findings",
            **{_anchor(i): self._heading(scene) for i, scene in enumerate(self.scenes)},
        }
        if self.trials:
            links["replay"] = "Replay of the real trial"
        links |= {"guarantees": "Guarantees", "reading": "How to read this page"}
        written = Html("\n".join(tag("a", name, href=f"#{key}") for key, name in links.items()))
        return tag("nav", written, aria_label="Contents")

    def _heading(self, scene: Scene) -> str:
        return "Results" if len(self.scenes) == 1 else f"Results: {scene.title}"

    def body(self) -> Html:
        sections = []
        if self.record.claims:
            sections.append(
                tag("section", *claims.section(self.record.claims, self.record.notes), id="claims")
            )
        if self.record.exhibits:
            sections.append(tag("section", *self._exhibits(), id="exhibits"))
        sections.append(tag("section", *self._findings(), id="findings"))
        for i, scene in enumerate(self.scenes):
            sections.append(tag("section", *self._scene(i, scene), id=_anchor(i)))
        if self.trials:
            sections.append(tag("section", *self._replay(), id="replay"))
        sections.append(tag("section", *self._guarantees(), id="guarantees"))
        sections.append(tag("section", *self._reading(), id="reading"))
        return Html("\n".join(sections))

    def foot(self) -> Html:
        versions = ", ".join(f"{name} {version}" for name, version in self.record.versions.items())
        took = f"The simulation took {seconds(self.record.elapsed)}. "
        return tag(
            "p", f"Written by dpbandits. {took}{f'Versions: {versions}.' if versions else ''}"
        )

    def _exhibits(self) -> Iterator[Html]:
        yield tag("h2", "Figures to the claims")
        shown = self.record.exhibits
        labels = list(
            dict.fromkeys(
                series.label for one in shown for panel in one.panels for series in panel.series
            )
        )
        for one in shown:
            yield tag("h3", one.heading)
            yield self._figure(
                None, one.name, partial(figures.exhibit, one, labels), one.alt, one.caption
            )

    # Findings and results --------------------------------------------------------------------

    def _findings(self) -> Iterator[Html]:
        yield tag("h2", "Main findings")
        if not self.record.claims:  # beside which they stand otherwise
            for note in self.record.notes:
                yield tag("p", note, class_="note")
        yield from self._told(in_people)
        if self.trials:
            yield tag("h3", "In the replay of the real trial")
            yield items(in_words(trial, self.looks) for trial in self.trials)
        yield tag("h3", "The budgets in words")
        kinds = sorted(
            map(level, self.result.runs["holds"].drop_duplicates()), key=lambda kind: kind.order
        )
        rows = [(kind.shown, [[meaning(kind)]]) for kind in kinds]
        yield table(
            "Every budget that holds in this study, translated.",
            ["Budget", "What may be learnt about one person"],
            rows,
            [1],
        )
        yield tag("h3", "In the language of bandits")
        yield from self._told(in_regret)
        yield tag(
            "p",
            "Intervals hold for one number at a time and describe the chance in the simulated runs,"
            " with the mean rewards of the arms taken as true. How well those are known is another"
            " matter that they do not cover. The best setting and the policies of lowest mean"
            " regret were picked after looking, so their leads are flattered a little.",
            class_="note",
        )

    def _told(self, findings: Callable[[Scene, Mapping[str, Look]], list[str]]) -> Iterator[Html]:
        for scene in self.scenes:
            found = findings(scene, self.looks)
            if found and len(self.scenes) > 1:
                yield tag("h4", scene.title)
            if found:
                yield items(found)

    def _scene(self, index: int, scene: Scene) -> Iterator[Html]:
        yield tag("h2", self._heading(scene))
        yield tag("p", self._setting(scene))
        for told in on_clipping(scene, self.looks):
            yield tag("p", told, class_="note")
        yield from self._regret(index, scene)
        if scene.distances is not None:
            yield from self._distance(index, scene, scene.distances)
        if scene.named:
            yield from self._shares(index, scene)
        if scene.baseline is not None:
            yield from self._helped(index, scene)
        yield tag("h3", "The numbers")
        yield self._numbers(scene)
        yield from self._spent(scene)

    def _setting(self, scene: Scene) -> str:
        what = f"{scene.name}: {len(scene.arms)} arms"
        if scene.means is None:
            return f"{what}. Each run has {scene.horizon:,} rounds."
        rates = ", ".join(
            f"{arm}: {number(mean)}" for arm, mean in zip(scene.arms, scene.means, strict=True)
        )
        return f"{what}, with these mean rewards: {rates}. Each run has {scene.horizon:,} rounds."

    def _regret(self, index: int, scene: Scene) -> Iterator[Html]:
        best = scene.table.loc[scene.table["regret"].idxmin()]
        worst = scene.table.loc[scene.table["regret"].idxmax()]
        reach = (
            f"After {scene.horizon:,} rounds the mean regret lies between {amount(best['regret'])}"
            f" ({self._setting_of(best)}) and {amount(worst['regret'])}"
            f" ({self._setting_of(worst)})."
        )
        yield tag("h3", "Regret as people come in")
        yield self._figure(
            index,
            "regret",
            lambda width: figures.regret_curves(scene.curves, looks_of=self.looks, width=width),
            f"Curves of mean regret over rounds, one panel per budget. {reach}",
            "Regret is what was lost, in expected rewards, against always playing the best arm:"
            " lower is better, and a curve that flattens has found it. Shades are 95 % bootstrap"
            " bands of the mean over runs. Each notion of privacy has rows and a scale of its own.",
        )
        if any(kind.comparable for kind in scene.table["level"]):
            yield tag("h3", "What privacy costs")
            yield self._figure(
                index,
                "regret-by-budget",
                lambda width: figures.regret_by_budget(scene, self.looks, width),
                "Mean final regret against the privacy budget, one panel per notion of privacy."
                f" {reach}",
                "Bars are 95 % intervals, sometimes smaller than the marks, which are moved"
                " sideways a little to stay apart. The notions of privacy have panels of their own"
                " because their numbers are not comparable: 1-zCDP is not 1-DP. Dashed lines: the"
                " same policy with an open channel, that is without noise.",
            )

    def _distance(self, index: int, scene: Scene, curves: pd.DataFrame) -> Iterator[Html]:
        yield tag("h3", "How far the estimate is from the truth")
        yield self._figure(
            index,
            "distance",
            lambda width: figures.distance_curves(curves, self.looks, width),
            "Curves of the mean distance between estimated and true parameter over"
            f" {scene.horizon:,} rounds, one panel per budget.",
            "The L2 distance between the parameter that a policy believes in and that of the"
            " environment, mean over runs with 95 % bands. Good play needs the parameter only in"
            " the directions that matter.",
        )

    def _shares(self, index: int, scene: Scene) -> Iterator[Html]:
        beside = f", beside {scene.reference[0]}" if scene.reference else ""
        best = "" if scene.best is None else f" {self._best_shares(scene)}"
        yield tag("h3", "Who gets which arm")
        yield self._figure(
            index,
            "arm-shares",
            lambda width: figures.arm_shares(scene, self.looks, width),
            "Stacked bars of the share of rounds per arm, for each policy and"
            f" budget{beside}.{best}",
            f"Mean over runs, in percent{beside}.{best}",
        )

    def _best_shares(self, scene: Scene) -> str:
        shares = scene.table[f"share_{scene.best}"]
        return (
            f"The best arm, {scene.arms[scene.best or 0]}, got {percent(shares.min())} to"
            f" {percent(shares.max())}."
        )

    def _helped(self, index: int, scene: Scene) -> Iterator[Html]:
        assert scene.baseline is not None
        name = scene.baseline[0]
        low, high = scene.table["gain"].min(), scene.table["gain"].max()
        yield tag("h3", "People helped" if scene.reference else "Reward gained")
        yield self._figure(
            index,
            "people-helped",
            lambda width: figures.people_helped(scene, self.looks, width),
            f"Expected {scene.gained} per 1,000 people compared with {name}, per policy and budget:"
            f" from {more_or_fewer(low)} to {more_or_fewer(high)}.",
            f"Expected {scene.gained} per 1,000 people, more (right) or fewer (left) than with"
            f" {name}: the share of people each arm got, times that arm's mean. Lines are 95 %"
            " intervals of the mean over runs, often hidden behind the marks; open marks have no"
            " privacy.",
        )

    def _numbers(self, scene: Scene) -> Html:
        heads = ["Policy", "Budget", f"Regret after {scene.horizon:,} rounds"]
        if scene.baseline is not None:
            unit = scene.gained.capitalize()
            heads += [
                f"{unit} per 1,000",
                f"Compared with {scene.baseline[0]}",
                f"Share of {scene.arms[scene.best or 0]}",
            ]

        def cells(row: pd.Series) -> list[str]:
            found = [promised(row["budget"], row["holds"]), _ranged(of_row(row, "regret"), amount)]
            if scene.baseline is not None:
                found += [
                    _ranged(of_row(row, "helped"), per_thousand),
                    _ranged(of_row(row, "gain"), more_or_fewer),
                ]
                found.append(percent(row[f"share_{scene.best}"], 1))
            return found

        return table(
            f"Means over runs, with 95 % bootstrap intervals. {_DASH}",
            heads,
            self._grouped(scene.table, cells),
        )

    def _spent(self, scene: Scene) -> Iterator[Html]:
        limited = scene.table[(scene.table["budget"] != NO_PRIVACY) & scene.table["limit"].notna()]
        exhausted = len(limited) > 0 and all(
            _share(row) == _ALL and not row["over"] for _, row in limited.iterrows()
        )

        def cells(row: pd.Series) -> list[str]:
            counts = [_mean_count(row["releases"]), _mean_count(row["draws"])]
            if row.name not in limited.index:
                spending = ["no limit", "not counted", "–"]
            else:
                unit = _CURRENCIES.get(row["currency"], "")
                spending = [
                    f"{unit} {number(row['limit'])}",
                    f"{unit} {number(row['spent'])}",
                    _bar(row),
                ]
            return [
                promised(row["budget"], row["holds"]),
                *(spending[:2] if exhausted else spending),
                *counts,
            ]

        yield tag("h3", "Privacy spent")
        yield tag(
            "p",
            "Every noisy number that leaves the private side is written in a ledger. Spent is the"
            " worst case over people: the most that was paid for any one person's record, in the"
            " run that paid most.",
            (
                " Every private policy spent all of its limit, and none spent more."
                if exhausted
                else ""
            ),
        )
        share = [] if exhausted else ["Of the limit"]
        heads = [
            "Policy",
            "Budget",
            "Limit",
            "Most spent in any run",
            *share,
            "Releases per run",
            "Noise draws per run",
        ]
        squares = "(ε, δ) budgets are counted in μ², the currency in which Gaussian noise adds up."
        caption = (
            "Privacy spent against the budget."
            f" {squares if 'gdp' in set(limited['currency']) else ''}".strip()
        )
        yield table(caption, heads, self._grouped(scene.table, cells))

    def _grouped(
        self, rows: pd.DataFrame, cells: Callable[[pd.Series], list[str]]
    ) -> Iterator[tuple[Html, list[list[str]]]]:
        for policy, group in rows.groupby("policy", sort=False):
            look = self.looks[str(policy)]
            yield (
                Html(figures.swatch(look) + text(look.label)),
                [cells(row) for _, row in group.iterrows()],
            )

    def _setting_of(self, row: pd.Series) -> str:
        return f"{self.looks[row['policy']].label}, {row['level'].shown}"

    def _figure(
        self, index: int | None, name: str, draw: Callable[[float], Figure], alt: str, caption: str
    ) -> Html:
        """A figure in the page and, as it is at a desk, in files."""
        prefix = (
            ""
            if index is None or len(self.scenes) == 1
            else f"{index + 1}-{_slug(self.scenes[index].title)}-"
        )
        wide = draw(figures.WIDE)
        drawn = figures.svg(wide)
        (self.gallery / f"{prefix}{name}.svg").write_bytes(drawn)
        (self.gallery / f"{prefix}{name}.png").write_bytes(figures.png(wide))
        narrow = figures.svg(draw(figures.NARROW))
        return tag("figure", picture(drawn, narrow, alt), tag("figcaption", caption))

    # Replay, guarantees and reading ----------------------------------------------------------

    def _replay(self) -> Iterator[Html]:
        yield tag("h2", "Replay of the real trial")
        yield tag(
            "p",
            "Here nothing is simulated but the noise: real people come in random order, and one"
            " counts when the policy picks the arm that the person really got. What is counted is"
            " then an unbiased sample of what the policy would have met. Few people count, so a"
            " replay is shorter than the trial, and the policies are still learning through most"
            " of it.",
        )
        for i, trial in enumerate(self.trials):
            yield from self._trial("replay" if i == 0 else f"replay-{i + 1}", trial)

    def _trial(self, name: str, trial: Trial) -> Iterator[Html]:
        yield tag("h3", trial.name)
        yield self._figure(
            None,
            name,
            lambda width: figures.replay_rates(trial.rates, self.looks, trial.own, width),
            f"Success rates in the replay. {in_words(trial, self.looks)}",
            "Mean success rate over replays with 95 % intervals; open marks have no privacy. The"
            " replays shuffle the same people, so the intervals do not say how another trial, with"
            " other people, would have come out.",
        )

        def cells(row: pd.Series) -> list[str]:
            gap = (
                "–"
                if trial.own is None
                else f"{more_or_fewer(100 * (row['rate'] - trial.own[1]))} points"
            )
            rate = _ranged(of_row(row, "rate"), lambda rate: percent(rate, 1))
            return [
                promised(row["budget"], row["holds"]),
                rate,
                gap,
                _mean_count(row["rounds"]),
                _mean_count(row["releases"]),
            ]

        heads = [
            "Policy",
            "Budget",
            "Success rate",
            "Compared with the trial",
            "People counted",
            "Releases",
        ]
        yield table(
            f"Means over replays, with 95 % intervals. {_DASH}",
            heads,
            self._grouped(trial.rates, cells),
        )

    def _guarantees(self) -> Iterator[Html]:
        yield tag("h2", "What is guaranteed")
        if any(simulated(entry) for entry in self.policies):
            yield stamp()
        yield tag(
            "p",
            "The promise of every policy in full. What several budgets have in common stands once,"
            " above the list of them.",
        )
        yield from cards(self.policies, self.looks)

    def _reading(self) -> Iterator[Html]:
        yield tag("h2", "How to read this page, and how it was computed")
        words = {
            "Round": "One person: the policy picks an arm, the person's answer is the reward.",
            "Regret": (
                "The expected reward of always playing the best arm, minus that of the arms that"
                " were played. It counts expectations, not luck: two runs that play the same arms"
                " have the same regret."
            ),
            "Bands and intervals": (
                "95 % percentile bootstrap of the mean over runs, 2,000 resamples. Differences"
                " between policies are paired run by run, as both then meet the same random numbers"
                " of the environment. No correction was made for looking at many numbers."
            ),
            "Privacy budget": (
                "What all that a policy releases may reveal about one person's reward, at most."
                " Smaller is stricter. The numbers of different notions (zCDP ρ, pure ε,"
                " approximate ε with δ) must not be compared as they stand; the table beside the"
                " findings translates them."
            ),
            "Local": (
                "Rewards are randomised before anyone sees them. Policies marked local promise more"
                " at the same number than the others, whose operator is trusted with the true"
                " rewards."
            ),
            "No guarantee": (
                "The noise was made for the budget that was asked for, but no proof holds: rewards"
                " have to be taken as unprotected, and regret at that budget is not comparable with"
                " that of policies whose budget holds."
            ),
            "No privacy": (
                "The same policy through an open channel, without noise; the difference to it is"
                " the price of privacy."
            ),
            "Releases and noise draws": (
                "How many times something left the private side, and how many random numbers were"
                " added to it; both are means over runs."
            ),
            "Seed": f"{self.record.seed}. The same seed and versions give the same numbers.",
        }
        yield tag(
            "dl",
            *(
                part
                for name, meant in words.items()
                for part in (tag("dt", name), tag("dd", meant))
            ),
        )
        yield tag("h3", "Policies as they were configured")
        yield items(f"{look.label}: {policy}" for policy, look in self.looks.items())
        if self.record.config:
            yield tag("h3", "The study as it was declared", class_="screen")
            yield tag(
                "pre",
                json.dumps(self.record.config, indent=2, ensure_ascii=False, default=str),
                class_="screen",
            )


def _ranged(value: Estimate, show: Callable[[float], str]) -> Html:
    """A mean in a cell, its interval below."""
    if pd.isna(value.low):
        return text(show(value.mean))
    low, high = show(value.low), show(value.high)
    return Html(
        text(show(value.mean))
        + tag("span", "–" if low == high else f"{low} to {high}", class_="range")
    )


def _share(row: pd.Series) -> str:
    return percent(row["spent"] / row["limit"], 1)


def _bar(row: pd.Series) -> Html:
    """How much of its limit a row spent, drawn and in percent."""
    width = min(100 * row["spent"] / row["limit"], 100)
    bar = (
        f'<span class="bar{" over" if row["over"] else ""}"><i'
        f' style="width:{width:.1f}%"></i></span>'
    )
    return Html(
        bar + text(_share(row) + (f", over in {row['over']:,} runs" if row["over"] else ""))
    )


def _mean_count(value: float) -> str:
    return f"{value:,.1f}"


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _anchor(index: int) -> str:
    return f"results-{index + 1}"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
