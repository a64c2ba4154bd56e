"""Results of simulations: tidy tables that can be saved, summarised and compared."""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import ArgumentError, StateFileError
from ..html import Html, glance
from ..plotting.labels import promise
from ..plotting.numbers import number
from ..validation import integer, real
from .settings import PolicySetting, SettingsByKey, keyed, policy_styles, with_budget_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["environment", "policy", "budget"]
_FORMAT = 3  # of saved results
_TABLE = "dpbandits."  # before the names of further tables
_MANY = 1000  # runs from which it is faster to draw runs, one by one, than how often each is drawn
_AT_ONCE = 1 << 22  # draws of the bootstrap in one part: 32 MB
_KEPT = 1 << 26  # bytes of draws that are kept, as small integers, for other means of as many runs
_LARGEST = 2**31 - 1  # bytes that a piece of metadata may take


@dataclass(frozen=True)
class Result:
    """The result of ``simulate``.

    The columns ``environment``, ``policy``, ``budget`` and ``holds`` of the tables are keys for
    people to read.  Do not parse them: ``settings`` and ``info`` describe the compared policies and
    environments.

    Attributes:
        frame: one row per (environment, policy, budget, run, round), with categories as keys: the
            cumulative expected ``regret``, and ``holds``: the budget that really holds where
            ``budget`` was asked for, or "none".  With contexts and a linear truth also
            ``distance``, the L2 error of the policy's estimate of the parameter.
        runs: one row per (environment, policy, budget, run): ``holds``, final ``regret``,
            ``reward``, ``releases``, ``draws``, ``spent`` (in the currency of the budget) and
            ``pulls_0``, ``pulls_1``, ... .  Of searches for the best arm also ``stopped`` (after
            how many rounds; NaN: not within the horizon), the arm ``recommended`` at the end,
            ``wrong`` (1 where another one is better, by however little; else 0) and
            ``simple_regret`` (by how much).  If asked also ``decided`` (the first recorded round
            at which ``Policy.decided`` was True; NaN: not within the horizon) and
            ``decided_wrong`` (1 where the arm is not as good as that says; else 0), with a holdout
            also ``holdout_decided`` and ``holdout_decided_wrong``.
        settings: (policy, budget) -> ``PolicySetting``: class, arguments, budgets and guarantee.
        info: JSON data: ``horizon``, ``runs``, ``seed``; ``environments``: environment ->
            ``title``, ``support`` of rewards, ``means``, ``arm_names``, ``reference``.
    """

    frame: pd.DataFrame
    runs: pd.DataFrame
    settings: SettingsByKey
    info: dict[str, Any]

    @classmethod
    def combined(cls, results: Sequence[Result]) -> Result:
        """Several results as one: of the same or other policies, in the same or other environments.
        ``horizon`` and ``runs`` are the largest.

        Raises:
            ArgumentError: there are none, two hold the same policy and budget in the same
                environment, or different policies have the same name.
        """
        if not results:
            raise ArgumentError("results must hold at least one result")
        held = pd.concat([result.runs[KEYS].drop_duplicates() for result in results])
        if held.duplicated().any():
            twice = held[held.duplicated()].iloc[0]
            raise ArgumentError(
                f"results must hold each policy once per environment, got {twice.to_dict()} twice"
            )
        settings = merged_settings(result.settings for result in results)
        infos = [result.info for result in results]
        largest = {name: max(one[name] for one in infos) for name in ("horizon", "runs")}
        worlds = {key: facts for one in infos for key, facts in one["environments"].items()}
        info = {**infos[0], **largest, "environments": worlds}
        frame = stacked([result.frame for result in results])
        return cls(frame, stacked([result.runs for result in results]), settings, info)

    @classmethod
    def merge(cls, parts: Sequence[Result]) -> Result:
        """The runs of several results as those of one: ``simulate(..., runs=50)`` and
        ``simulate(..., first_run=50, runs=50)`` make ``simulate(..., runs=100)``.

        Args:
            parts: of the same arguments but for ``first_run`` and ``runs``, in any order.

        Returns:
            A ``Result`` equal to that of one simulation, which ``save`` writes as the same bytes.

        Raises:
            ArgumentError: there are no parts, they have other arguments, or two have the same run.

        Example:
            >>> from dpbandits import simulate
            >>> from dpbandits.algorithms import UCB1
            >>> from dpbandits.environments import Bernoulli
            >>> policy, world = UCB1(2), Bernoulli([0.9, 0.1])
            >>> half, rest = (
            ...     simulate(policy, world, horizon=100, first_run=n, runs=5) for n in (0, 5)
            ... )
            >>> whole = simulate(policy, world, horizon=100, runs=10)
            >>> Result.merge([rest, half]).frame.equals(whole.frame)
            True
        """
        info = merged_info([part.runs for part in parts], [part.info for part in parts])
        settings = merged_settings(part.settings for part in parts)
        frame = in_order([part.frame for part in parts], "run", "round")
        return cls(frame, in_order([part.runs for part in parts], "run"), settings, info)

    @property
    def titles(self) -> dict[str, str]:
        """Titles of environments in headings, by their keys."""
        return environment_titles(self.info["environments"])

    def summary(
        self, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
    ) -> pd.DataFrame:
        """Mean regret per policy and recorded round.

        Returns:
            Columns: environment, policy, budget, holds, round, ``mean`` regret with its percentile
            bootstrap band over runs from ``low`` to ``high``, and runs.

        Raises:
            ArgumentError: an argument is out of range.
        """
        confidence = real("confidence", confidence, 0.0, 1.0, strict=True)
        resamples = integer("resamples", resamples, 1)
        seed = integer("seed", seed, 0)
        names, rows = [*KEYS, "holds"], []
        for keys, group in self.frame.groupby(names, sort=False, dropna=False, observed=True):
            curves = group.pivot(index="run", columns="round", values="regret")
            low, high = bootstrap_band(curves.to_numpy(), confidence, resamples, seed)
            facts = {
                "round": curves.columns,
                "mean": curves.mean().to_numpy(),
                "low": low,
                "high": high,
                "runs": len(curves),
            }
            rows.append(pd.DataFrame({**dict(zip(names, keys, strict=True)), **facts}))
        return pd.concat(rows, ignore_index=True)

    def _repr_html_(self) -> Html:
        summary = self.summary()
        last = summary[summary["round"] == summary.groupby(KEYS)["round"].transform("max")]
        rows = described(last, self.titles, self.settings)
        heads = ["environment", "policy", "budget", "mean regret", "95 % band"]
        title = f"{self.info['horizon']:,} rounds, {self.info['runs']:,} runs"
        return glance(title, heads, rows)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        style: str | None = None,
        bounds: pd.DataFrame | None = None,
        yscale: str | None = None,
        width: float | None = None,
    ) -> Figure:
        """Plot mean regret curves with 95 % bands.

        Args:
            ax: one pair of axes for all curves, labelled at their ends; several results may share
                it.  By default each budget has a panel.
            style: "page" (the default), or a column of a paper: "ieee", "acm", "neurips", and over
                two columns "ieee-wide", "acm-wide".
            bounds: proved bounds, from ``theory.bound_curves``: thin lines, dashed from above and
                dotted from below.  Only without ``ax``.
            yscale: "linear" or "log"; by default logarithmic where regrets differ more than
                twentyfold.
            width: in inches; by default that of ``style``.  Only without ``ax``.

        Returns:
            A matplotlib figure that shows itself in a notebook.  ``savefig`` writes PDF, PGF (with
            ``pdflatex``) and others.  ``save_data`` writes the numbers as CSV, or as ``.dat`` for
            pgfplots.

        Raises:
            ArgumentError: an argument is out of range, or ``ax`` comes with several environments,
                ``bounds`` or ``width``.

        Example:
            >>> from dpbandits import ZCDP, simulate
            >>> from dpbandits.algorithms import MergedIMED, UCB1
            >>> from dpbandits.environments import Bernoulli
            >>> world, ax = Bernoulli([0.9, 0.1]), Result.axes("ieee")
            >>> for policy in (MergedIMED(2, budget=ZCDP(1.0)), UCB1(2)):
            ...     figure = simulate(policy, world, horizon=100, runs=5).plot(ax=ax)
            >>> print(f"{figure.get_figwidth():.2f}")
            3.49

        See also: ``axes``.
        """
        from ..plotting.curves import regret_curves, regret_on  # bring matplotlib: a while

        def titled(table: pd.DataFrame) -> pd.DataFrame:
            labelled = with_budget_labels(table, self.settings)
            return labelled.assign(environment=labelled["environment"].map(self.titles))

        curves, styles = titled(self.summary()), policy_styles(self.settings)
        if ax is not None:
            if bounds is not None or width is not None:
                raise ArgumentError("ax must not be given together with bounds or width")
            regret_on(ax, curves, styles, style=style, yscale=yscale)
            figure = ax.get_figure(root=True)
            assert figure is not None
            return figure
        options: Any = {"width": width, "yscale": yscale, "style": style or "page"}
        options["bounds"] = None if bounds is None or bounds.empty else titled(bounds)
        return regret_curves(curves, styles, **options)

    @staticmethod
    def axes(style: str = "page") -> Axes:
        """Empty axes for ``plot``, in a figure as wide as a column of a paper.

        Args:
            style: see ``plot``.

        Returns:
            Axes of matplotlib.  ``axes.figure`` has ``savefig`` and ``save_data``.

        Raises:
            ArgumentError: there is no such style.

        Example:
            >>> from dpbandits.simulation import Result
            >>> print(f"{Result.axes('neurips').figure.get_figwidth():.2f}")
            5.50

        See also: ``plot``.
        """
        from ..plotting.drawing import blank_axes  # brings matplotlib, which takes a while

        return blank_axes(style)

    def save(self, path: str | Path) -> Path:
        """Write everything to one Parquet file; the file appears complete or not at all."""
        return save_table(path, self.frame, self.settings, {"runs": self.runs, "info": self.info})

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read a result that ``save`` wrote.

        Raises:
            StateFileError: the file is no saved result, or one of another version.

        See also: ``save``.
        """
        frame, settings, extra = load_table(path, "runs", "info")
        return cls(stacked([frame]), extra["runs"], settings, extra["info"])


def described(
    summary: pd.DataFrame, titles: Mapping[str, str], settings: SettingsByKey
) -> list[list[str]]:
    """The rows of a summary in words: environment, policy, the budget that holds, mean, band."""
    styles, rows = policy_styles(settings), []
    for row in summary.to_dict("records"):
        one = settings[row["policy"], row["budget"]]
        mean, low, high = (number(row[name]) for name in ("mean", "low", "high"))
        names = titles[row["environment"]], styles[one.policy].label
        rows.append([*names, str(promise(one.budget, one.holds)), mean, f"{low} to {high}"])
    return rows


def merged_settings(several: Iterable[SettingsByKey]) -> SettingsByKey:
    """The settings of several results as those of one, if no two policies share a name."""
    merged: SettingsByKey = {}
    for settings in several:
        for key, one in settings.items():
            if merged.setdefault(key, one) != one:
                raise ArgumentError(
                    "results must not give different policies one name, got two called"
                    f" {key[0]!r} at {key[1]!r}"
                )
    return merged


def merged_info(runs: Sequence[pd.DataFrame], infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The ``info`` of results with these tables of runs as that of one.

    Raises:
        ArgumentError: they are not parts of one simulation.
    """
    if not runs:
        raise ArgumentError("parts must hold at least one result")
    for name in infos[0].keys() - {"runs"}:
        if len({json.dumps(info[name]) for info in infos}) > 1:
            raise ArgumentError(f"parts must have the same {name}")
    if len({tuple(map(tuple, table[KEYS].drop_duplicates().to_numpy())) for table in runs}) > 1:
        raise ArgumentError("parts must have the same policies, in the same order")
    numbers = pd.concat([table[[*KEYS, "run"]] for table in runs])
    if (again := numbers[numbers.duplicated()]["run"]).size:
        raise ArgumentError(f"parts must not share runs, got run {again.min()} twice")
    return {**infos[0], "runs": sum(info["runs"] for info in infos)}


def in_order(tables: Sequence[pd.DataFrame], *columns: str) -> pd.DataFrame:
    """The rows of tables of the same policies, for each policy in the order of columns."""
    rows = stacked(tables)
    policy = rows.groupby(KEYS, sort=False, dropna=False, observed=True).ngroup()
    order = np.lexsort([*(rows[name] for name in reversed(columns)), policy])
    return rows.iloc[order].reset_index(drop=True)


def category(texts: Sequence[str]) -> pd.Categorical:
    """Text as categories, in the order in which they appear."""
    places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    # With "object" pandas changes filters of warnings, and Python forgets what it has told.
    known = pd.Index(list(places), dtype=np.dtype(object))
    return pd.Categorical.from_codes([places[text] for text in texts], known)


def stacked(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all tables, with categories in the order in which they appear."""
    shared = {}
    for name in tables[0].select_dtypes("category"):
        columns = [pd.Categorical(table[name]) for table in tables]
        shown = [one.categories[pd.unique(one.codes)] for one in columns]
        union = list(dict.fromkeys(text for texts in shown for text in texts))
        known = category(union).categories
        shared[name] = [one.set_categories(known) for one in columns]
    alike = [
        table.assign(**{name: columns[i] for name, columns in shared.items()})
        for i, table in enumerate(tables)
    ]
    return pd.concat(alike, ignore_index=True)


def save_table(
    path: str | Path, table: pd.DataFrame, settings: SettingsByKey, extra: dict[str, Any]
) -> Path:
    """Write a table to a Parquet file, which appears complete or not at all.

    Settings, JSON data and further tables stand in its metadata.  Tables are stored there as
    Parquet, because JSON of a large study exceeds the limit of Parquet readers.
    """
    path, written = Path(path), pa.Table.from_pandas(table, preserve_index=False)
    described = [one.to_dict() for one in settings.values()]
    tables = {name: one for name, one in extra.items() if isinstance(one, pd.DataFrame)}
    data = {name: one for name, one in extra.items() if name not in tables}
    ours = json.dumps({"format": _FORMAT, "settings": described, **data})
    metadata = {**(written.schema.metadata or {}), "dpbandits": ours}
    metadata |= {f"{_TABLE}{name}": _packed(one) for name, one in tables.items()}
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        pq.write_table(written.replace_schema_metadata(metadata), temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def _packed(table: pd.DataFrame) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def load_table(path: str | Path, *keys: str) -> tuple[pd.DataFrame, SettingsByKey, dict[str, Any]]:
    """Read a file that ``save_table`` wrote with these keys of data and tables."""
    try:
        table = pq.read_table(path, thrift_string_size_limit=_LARGEST)
        extra = json.loads(table.schema.metadata[b"dpbandits"])
        if extra.pop("format", None) != _FORMAT:
            raise StateFileError(
                f"{path} was saved by another version of dpbandits, in a format that this version"
                " does not read; simulate again"
            )
        settings = keyed(map(PolicySetting.from_dict, extra.pop("settings")))
        for name, packed in table.schema.metadata.items():
            if name.startswith(_TABLE.encode()):
                extra[name.decode().removeprefix(_TABLE)] = pq.read_table(
                    pa.BufferReader(packed)
                ).to_pandas()
        if set(extra) != set(keys):
            raise ValueError(f"it holds {sorted(extra)}")
    except FileNotFoundError:
        raise
    except (pa.ArrowException, AttributeError, KeyError, TypeError, ValueError) as error:
        raise StateFileError(f"{path} is not a saved result: {error}") from error
    return table.to_pandas(), settings, extra


def environment_titles(environments: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Titles of environments in headings; equal titles are numbered, in their order.

    >>> environment_titles({key: {"title": title} for key, title in zip("abc", "XYX")})
    {'a': 'X (1 of 2)', 'b': 'Y', 'c': 'X (2 of 2)'}
    """
    titles = {key: facts["title"] for key, facts in environments.items()}
    counts, seen = Counter(titles.values()), Counter[str]()
    for key, title in titles.items():
        seen[title] += 1
        if counts[title] > 1:
            titles[key] = f"{title} ({seen[title]} of {counts[title]})"
    return titles


def bootstrap_band(
    curves: np.ndarray, confidence: float, resamples: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bootstrap of the mean over rows; ``curves`` has shape (runs, points).

    Whatever has as many runs is resampled alike.  So a policy's band does not depend on which
    others are in the result.
    """
    runs = curves.shape[0]
    means = [drawn / runs @ curves for drawn in _resampled(runs, resamples, seed)]
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(np.concatenate(means), [tail, 1.0 - tail], axis=0)
    return low, high


def _resampled(runs: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each resample, a row, draws each run; in parts that fit in memory as floats."""
    if runs * resamples * np.min_scalar_type(runs).itemsize <= _KEPT:
        yield from _kept(runs, resamples, seed)
    else:
        yield from _drawn(runs, resamples, seed)


@lru_cache(maxsize=2)
def _kept(runs: int, resamples: int, seed: int) -> list[np.ndarray]:
    return list(_drawn(runs, resamples, seed))


def _drawn(runs: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    rng, kind, size = np.random.default_rng(seed), np.min_scalar_type(runs), _AT_ONCE // runs or 1
    for first in range(0, resamples, size):
        count = min(size, resamples - first)
        if runs < _MANY:
            draws = rng.multinomial(runs, np.full(runs, 1.0 / runs), size=count)
        else:
            each = (rng.integers(runs, size=runs) for _ in range(count))
            draws = np.stack([np.bincount(one, minlength=runs) for one in each])
        yield draws.astype(kind)
