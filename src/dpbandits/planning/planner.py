"""``plan``: the policies that fit a setting, their proved bounds, and their simulated regret."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..environments import ArmsEnvironment, Environment
from ..errors import ArgumentError
from ..policies import Holdout, Policy
from ..privacy.budgets import Budget
from ..report.claims import VERDICT_CONFIDENCE
from ..report.means import Estimate, estimate
from ..simulation import simulate
from ..simulation.parallel import ProgressCallback
from ..theory import Promise, promises
from ..theory.curves import label_of
from ..validation import integer, real
from .candidates import Candidate, candidates
from .holdouts import HoldoutPlan
from .measuring import Measured, paired_lead
from .plans import Plan
from .setting import Setting
from .targets import Outcome, Paying, where_it_pays
from .yardsticks import in_reverse, regret_at_random, yardsticks

_LONGEST, _LONGEST_WITH_CONTEXTS, _LONGEST_LATE = 100_000, 20_000, 2_000
_LONGEST_SEARCH = 1_000_000  # for how many rounds a policy begins to pay
_POINTS = 100  # rounds at which regrets are compared
_UNKNOWN = Estimate(math.nan, math.nan, math.nan)


def plan(
    setting: Setting | Environment,
    horizon: int,
    budget: Budget | None,
    *,
    rounds: int | None = None,
    runs: int = 20,
    seed: int = 0,
    tolerance: float = 0.2,
    n_jobs: int = 1,
    progress: ProgressCallback | bool = False,
    holdout: float | Holdout | None = None,
    **options: Any,
) -> Plan:
    """Choose a policy for a setting, and estimate its regret.

    The plan lists the proved bounds of every policy that fits.  With an environment, it simulates
    each with the budget and without any, and also policies without privacy.

    Args:
        setting: a ``Setting``, or an environment, which stands for ``Setting.of(environment)``.
        horizon: number of rounds.
        budget: of the policies; None for no privacy.
        rounds: the number of rounds to simulate; 0 for none.  By default the horizon, but at most
            100,000 (20,000 with contexts or experts, 2,000 where answers are late).  Policies are
            configured for the whole horizon.  The plan makes no statement on rounds that were not
            simulated.
        runs: of every policy, at least 2.
        seed: of the simulation, as ``simulate`` takes it.
        tolerance: the largest share of additional regret that counts as free privacy.
        n_jobs: processes; -1 for one per core.
        progress: as of ``simulate``.
        holdout: see ``Options``.  Regret is measured without it, and ``Plan.holdout`` tells its
            price and its use.
        **options: see ``Options``; for all policies.

    Returns:
        A ``Plan``: its ``table`` lists the policies that fit, and ``best`` is the one to take.

    Raises:
        ArgumentError: an argument is out of range, or no policy fits.

    See also: ``simulate``, ``bandit``.

    Example:
        >>> from dpbandits import PureDP
        >>> from dpbandits.environments import Bernoulli
        >>> setting = Setting.of(Bernoulli([0.2, 0.8]), trust="local")
        >>> found = plan(setting, 1000, PureDP(1.0), runs=5)
        >>> found.best, type(found.policy(seed=1)).__name__
        ('LDPIMED', 'ArmsLocal')
        >>> found.left_out["MergedIMED"]
        'the party that runs it sees raw rewards'
    """
    setting = setting if isinstance(setting, Setting) else Setting.of(setting)
    horizon, runs = integer("horizon", horizon, 1), integer("runs", runs, 2)
    tolerance = real("tolerance", tolerance, 0.0)
    if setting.environment is not None and np.isfinite(setting.environment.support).all():
        options = {"reward_range": setting.environment.support, **options}
    fitting, left_out = candidates(setting, budget)
    policies, refused = _built(fitting, setting, budget, horizon, options)
    if not policies:
        raise _nobody(setting, budget, refused)
    if holdout is not None:  # which one of them refuses before anything is simulated
        first = next(one for one in fitting if one.title in policies)
        first.build(setting, budget, horizon, **{**options, "holdout": holdout})
    simulated = _rounds(setting, horizon, rounds)
    measured: Measured | None = None
    play: dict[str, Any] = {"runs": runs, "seed": seed, "n_jobs": n_jobs, "progress": progress}
    if simulated:
        open_ = [one for one in fitting if one.title in policies]
        open_ += [one for one in candidates(setting, None)[0] if not one.cls.card.noise]
        public = _built(open_, setting, None, horizon, options)[0] if budget else policies
        played = list(dict.fromkeys([*policies.values(), *public.values()]))
        assert setting.simulated is not None
        result = simulate(played, setting.simulated, horizon=simulated, record=_POINTS, **play)
        measured = Measured(result, policies, public, setting.best_arm)
    world = setting.environment
    found = {title: promises(one, world, [horizon]) for title, one in policies.items()}
    upper = {title: one for title in found if (one := _least(found[title], setting.best_arm))}
    table = _table(policies, upper, setting, measured, budget, tolerance)
    # Whatever was measured: the default, or whose promise is best; else who loses least.
    order = table.sort_values(
        ["default", "promise", "mean"], ascending=[False, True, True], kind="stable"
    )
    usual = str(order["policy"].iloc[0])
    # Of searches those that promise not to err may take the place of the usual one.
    rivals = [
        title
        for title, one in policies.items()
        if not setting.best_arm or "failure_probability" in one.arguments
    ]
    best = (measured and measured.beaten(usual, rivals)) or usual
    beside, saved, pays = None, None, None
    if measured and not setting.best_arm:
        turned = _Turned(in_reverse(setting), simulated, {**play, "progress": False})
        if best != usual and not turned.beats(policies[best], policies[usual]):
            best = usual
        range_ = policies[best].reward_range
        beside = yardsticks(setting, simulated, budget, range_, runs=runs, seed=seed)
        lost = turned.both(policies[best], measured.loss(policies[best]))
        saved = paired_lead(beside.random, lost)
        if beside.random.any() and not saved.low > 0.0:
            (chosen,) = (one for one in fitting if one.title == best)
            explores = beside.exploring is not None
            pays = _paying(chosen, setting, budget, simulated, options, play, explores)
    held = None
    if holdout is not None:
        with_holdout = {**options, "holdout": holdout}
        own = next(one for one in fitting if one.title == best)
        policy = own.build(setting, budget, horizon, **with_holdout)
        held = HoldoutPlan.of(policy, setting.simulated, simulated, horizon)
        options = with_holdout
    ranks = ["best", "mean"] if measured else ["best", "promise"]
    ranked = table.assign(best=table["policy"] != best).sort_values(ranks, kind="stable")
    return Plan(
        setting=setting,
        budget=budget,
        horizon=horizon,
        rounds=simulated,
        runs=runs,
        seed=seed,
        tolerance=tolerance,
        table=ranked.drop(columns="best").reset_index(drop=True),
        left_out={**left_out, **refused},
        fitting={one.title: one for one in fitting if one.title in policies},
        usual=usual,
        best=best,
        promises=upper,
        floor=None if setting.best_arm else _floor(found[best]),
        measured=measured,
        yardsticks=beside,
        saved=saved,
        pays=pays,
        options=options,
        holdout=held,
    )


@dataclass(frozen=True)
class _Turned:
    """The world with its arms in reverse, where a gain by order is lost; see ``in_reverse``."""

    world: ArmsEnvironment | None
    horizon: int
    play: Mapping[str, Any]

    def both(self, policy: Policy, losses: np.ndarray) -> np.ndarray:
        """The mean loss in both orders, of every run."""
        return losses if self.world is None else (losses + self._loss(policy)) / 2.0

    def beats(self, one: Policy, other: Policy) -> bool:
        """Whether the first loses less beyond doubt there, too."""
        if self.world is None:
            return True
        lead = paired_lead(self._loss(other), self._loss(one), VERDICT_CONFIDENCE)
        return bool(lead.low > 0.0)

    def _loss(self, policy: Policy) -> np.ndarray:
        assert self.world is not None
        played = simulate(policy, self.world, horizon=self.horizon, record=1, **self.play)
        return played.runs["regret"].to_numpy()


def _paying(
    chosen: Candidate,
    setting: Setting,
    budget: Budget | None,
    horizon: int,
    options: Mapping[str, Any],
    play: Mapping[str, Any],
    explores: bool,
) -> Paying:
    """The point from which on a policy pays, by simulations of it alone."""
    world = setting.simulated
    assert world is not None
    longest = min(_longest(setting, _LONGEST_SEARCH), world.horizon or _LONGEST_SEARCH)
    quiet = {**play, "progress": False}

    def outcome(budget: Budget | None, rounds: int) -> Outcome:
        try:
            policy = chosen.build(setting, budget, rounds, **options)
        except ArgumentError:  # it does not take such a budget, or so many rounds
            return Outcome(_UNKNOWN, math.nan, math.nan)
        lost = simulate(policy, world, horizon=rounds, record=1, **quiet).runs["regret"].to_numpy()
        lost = _Turned(in_reverse(setting), rounds, quiet).both(policy, lost)
        own, of_runs = estimate(lost), {"runs": play["runs"], "seed": play["seed"]}
        random = float(regret_at_random(world, rounds, **of_runs).mean())
        if own.mean > random:  # who loses more than that is ahead of nobody
            return Outcome(own, random, math.inf)
        beside = yardsticks(setting, rounds, budget, policy.reward_range, **of_runs)
        explored = math.inf if beside.exploring is None else beside.exploring.cost.mean
        return Outcome(own, random, explored)

    return where_it_pays(budget, horizon, longest, outcome, exploring=explores)


def _longest(setting: Setting, without_contexts: int) -> int:
    """The largest number of simulated rounds."""
    if setting.simulated is not None and setting.simulated.delay is not None:
        return _LONGEST_LATE
    arms = isinstance(setting.simulated, ArmsEnvironment)
    return without_contexts if arms else _LONGEST_WITH_CONTEXTS


def _rounds(setting: Setting, horizon: int, rounds: int | None) -> int:
    """The number of rounds to simulate."""
    world = setting.simulated
    if rounds is not None:
        integer("rounds", rounds, 0, horizon)
    if world is None or rounds == 0:
        return 0
    return min(rounds or _longest(setting, _LONGEST), horizon, world.horizon or horizon)


def _built(
    fitting: list[Candidate],
    setting: Setting,
    budget: Budget | None,
    horizon: int,
    options: Mapping[str, Any],
) -> tuple[dict[str, Policy], dict[str, str]]:
    """The policies by their titles, and why some cannot be made."""
    policies, refused = {}, {}
    for one in fitting:
        try:
            policies[one.title] = one.build(setting, budget, horizon, **options)
        except ArgumentError as error:
            refused[one.title] = str(error)
    return policies, refused


def _least(found: list[Promise], searching: bool) -> Promise | None:
    """The least upper bound that is proved, constants and all, or else one that is not; of those
    that hold with a probability only where there is none in expectation.
    """
    uppers = [one for one in found if one.bound.kind == "upper"]
    if searching:
        bounds = [one for one in uppers if one.bound.of.startswith("rounds")]
    else:
        bounds = [one for one in uppers if one.bound.of.endswith("regret")]

    def rank(one: Promise) -> tuple[bool, bool, float]:
        return not one.bound.is_binding, one.bound.of == "regret", one.values[0]

    return min(bounds, key=rank, default=None)


def _floor(found: list[Promise]) -> Promise | None:
    """The largest lower bound on regret that is proved, also one that holds only as T grows."""
    bounds = [
        one
        for one in found
        if one.bound.kind == "lower"
        and one.bound.of == "expected regret"
        and one.bound.holds != "void"
        and one.bound.constants != "order"
    ]
    return max(bounds, key=lambda one: one.values[0], default=None)


def _table(
    policies: Mapping[str, Policy],
    upper: Mapping[str, Promise],
    setting: Setting,
    measured: Measured | None,
    budget: Budget | None,
    tolerance: float,
) -> pd.DataFrame:
    """One row per policy; see ``Plan``."""
    default = setting.default
    usual = default.policy if default is not None and default.stands else None
    rows = []
    for title, policy in policies.items():
        one = upper.get(title)
        proved = one is not None and one.bound.is_binding and np.isfinite(one.values[0])
        row: dict[str, Any] = {
            "policy": title,
            "default": policy.preset == usual,
            "promise": float(one.values[0]) if one is not None and proved else math.nan,
            "source": "" if one is None else f"{one.bound.of}: {label_of(one.bound)}",
        }
        cost = _UNKNOWN if measured is None else measured.cost_of(title)
        private = measured is not None and budget is not None
        price = measured.price(title) if measured and private else _UNKNOWN
        row |= cost._asdict()
        row |= {"price": price.mean, "price_low": price.low, "price_high": price.high}
        row["free_from"] = measured.free_from(title, tolerance) if measured and private else None
        if setting.best_arm:
            row["wrong"] = measured.wrong(policy).mean() if measured else math.nan
        rows.append(row)
    return pd.DataFrame(rows).astype({"free_from": "Int64"})


def _nobody(setting: Setting, budget: Budget | None, refused: Mapping[str, str]) -> ArgumentError:
    """Why there is no plan: policies refuse arguments, or other budgets, or there are none."""
    if refused:
        return ArgumentError(next(iter(refused.values())))
    would = [one.cls.card.notions for one in candidates(setting, None)[0]]
    kinds = sorted({kind.__name__ for notions in would for kind in notions})
    if not kinds:
        return ArgumentError(
            f"setting must be one for which there is a policy, got {setting.in_words}", "setting"
        )
    allowed = " or ".join(["None", *kinds])
    return ArgumentError(
        f"budget must be {allowed} for {setting.in_words}, got {budget!r}", "budget"
    )
