"""``audit``: attack a policy many times, and say how much privacy it is proved to lose."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..errors import ArgumentError
from ..policies import Policy
from ..privacy.channels import GAUSSIAN
from ..simulation.parallel import ProgressCallback, job_count, shown
from ..validation import choice, flag, integer, real
from .adversary import Adversary, canaries
from .loss_bounds import Claim, Rule, Weights, best_rule, claim_of, exposed, lower_bound, proved
from .planting import PLANTS, Plant, planted
from .playing import Batch, Play, played
from .result import Audit
from .scores import Scores, Seen, discriminant

Noise = Literal["simulation", "secure"]

RUNS: dict[str, int] = {"simulation": 20_000, "secure": 2_000}  # per world
_HORIZONS = (255, 1023, 4095, 16_383, 65_535)  # trees have most noise at the last of their rounds
_LONGEST = 10**6
_FEW = 1023  # rounds, after which it is enough to see anything of the person
_PILOTS = 100  # runs that choose the canary and the horizon, and are not counted
_OF_FLOATS = ("raw ratio", "finest bits")  # which simulated noise does not hide
_MOST_OF_ALPHA = 0.9  # spent on the likelihood ratio; the other scores share the rest


def audit(
    policy: Policy,
    *,
    adversary: Adversary | None = None,
    runs: int | None = None,
    horizon: int | None = None,
    noise: Noise = "simulation",
    alpha: float = 1e-4,
    plant: str | Plant | None = None,
    controls: bool = False,
    seed: int = 0,
    n_jobs: int = -1,
    progress: ProgressCallback | bool = False,
) -> Audit:
    """Play a policy in neighbouring worlds, try to tell them apart, and bound the loss from below.

    One person, the canary, has another record in world 1 than in world 0.  Each run's world is a
    fair coin.  Attackers see everything that the guarantee makes public: all releases, their times,
    and all decisions, except the canary's own where these are private.  The bound holds with
    probability 1 - alpha, for all scores together.

    Args:
        policy: a template; it is not changed.
        adversary: chooses contexts and rewards; by default a canary that moves its releases
            farthest, among people for whom the arms tie.
        runs: per world, on average; by default 20,000, and 2,000 with secure noise.
        horizon: rounds of a run; by default as many as the canary's record needs to be released.
        noise: "simulation", or "secure" for the noise that protects people, slower.
        alpha: the probability with which a true claim may be refuted.
        plant: a bug to plant, to test whether the audit notices it: "half" the noise, noise
            "redrawn" at every reading, the sensitivity of "add-remove", records "repeated" in later
            releases, or releases "timed" by answers. "null" is two equal worlds, and a ``Plant`` is
            a bug of your own.
        controls: whether to audit the policy with every plant, too, in a quarter of the runs.
        seed: of everything but secure noise.
        n_jobs: processes; -1 for one per core.
        progress: True for a bar, or a function that is called with (runs done, runs in all).

    Returns:
        An ``Audit``: ``verdict``, ``measured``, ``claimed``, ``scores``, ``plot()``.

    Raises:
        ArgumentError: an argument is out of range; the policy claims nothing; or no release within
            the horizon depends on the canary.

    Example:
        >>> from dpbandits import PureDP
        >>> from dpbandits.papers.concentrated import AdaPUCB
        >>> found = audit(AdaPUCB(2, budget=PureDP(1.0)), runs=2000)
        >>> found.verdict, 0.7 < found.measured < 1.0
        ('not refuted', True)
    """
    if not isinstance(policy, Policy):
        raise ArgumentError(
            f"policy must be a Policy, such as dpb.Arms(...), got {policy!r}", "policy"
        )
    choice("noise", noise, tuple(RUNS))
    alpha = real("alpha", alpha, 0.0, 0.5, strict=True)
    runs = RUNS[noise] if runs is None else integer("runs", runs, 50)
    seed, n_jobs = integer("seed", seed, 0), job_count(n_jobs)
    flag("controls", controls)
    attacked = policy.renewed(noise)
    claim = _claim(attacked)
    started = time.perf_counter()
    plan = _plan(attacked, adversary, horizon, seed)
    bug = planted(plant or Plant(), attacked)
    if bug.mechanism is not None and plan.play.secure:
        raise ArgumentError(
            f"plant must not be {plant if isinstance(plant, str) else bug.title!r} with secure"
            " noise: this bug works only in compiled code, and secure noise is drawn in Python",
            "plant",
        )
    play, total = replace(plan.play, plant=bug), 2 * runs
    with shown(progress) as report:
        seen = played(play, total, plan.scores.of, n_jobs, report)
    whole = Seen(*(np.concatenate(parts) for parts in zip(*seen, strict=True)))
    found = _measured(whole, plan, claim, alpha, secure=play.secure)
    counts, possible = found[found["counted"]], float("nan")
    if plan.losses is not None:
        possible = best_rule(plan.losses.of_runs(runs), claim.measure, alpha)[1]
    return Audit(
        policy=policy,
        claim=claim,
        measured=float(counts["bound"].max()),
        possible=possible,
        exposed=exposed(plan.moved, claim.measure),
        scores=found,
        adversary=play.adversary.title,
        horizon=play.horizon,
        runs=runs,
        noise=noise,
        alpha=alpha,
        planted=bug.title,
        controls=_controls(attacked, play, runs, alpha, n_jobs) if controls else None,
        seconds=time.perf_counter() - started,
    )


def _claim(policy: Policy) -> Claim:
    """The claim to refute; raises ArgumentError where nothing is claimed."""
    if policy.budget is None:
        raise ArgumentError(
            f"policy must have a budget, got {policy!r}: an audit tests what the budget claims",
            "policy",
        )
    if not policy.clip:
        raise ArgumentError(
            f"policy must have clip=True, got {policy!r}: without clipping, a reward may move a"
            " release by any amount",
            "policy",
        )
    promised = policy.guarantee.holds or policy.budget
    return claim_of(promised, gaussian=policy.channel.family == GAUSSIAN)


def _controls(policy: Policy, play: Play, runs: int, alpha: float, n_jobs: int) -> pd.DataFrame:
    """The results of the attack on planted bugs, and on a policy without any difference to find."""
    rows: list[tuple[str, float, str]] = []
    how: dict[str, Any] = {"adversary": play.adversary, "horizon": play.horizon, "seed": play.seed}
    how |= {"runs": max(runs // 4, 50), "noise": "secure" if play.secure else "simulation"}
    for name in PLANTS:
        try:
            found = audit(policy, plant=name, alpha=alpha, n_jobs=n_jobs, **how)
        except ArgumentError as error:
            rows.append((name, float("nan"), str(error)))
            continue
        expected = found.measured == 0.0 if name == "null" else found.refuted
        rows.append((found.planted, found.measured, "as expected" if expected else "missed"))
    return pd.DataFrame(rows, columns=["planted", "bound", "outcome"])


# The pilot --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """The choices of the pilot runs."""

    play: Play
    scores: Scores
    moved: float  # how far the canary moves releases at most, in scales of noise
    losses: Weights | None  # the law of the likelihood ratio; None where it is not known


def _plan(policy: Policy, adversary: Adversary | None, horizon: int | None, seed: int) -> _Plan:
    """The canary that moves simulated releases farthest, and the least horizon that shows it."""
    simulated = policy.renewed("simulation")
    scores = Scores(simulated)
    offered = [adversary] if adversary is not None else list(canaries(policy))
    best: tuple[float, Play, Batch] | None = None
    for length in _lengths(policy, horizon):
        plays = [Play(simulated, one, length, seed=seed) for one in offered]
        pilots = [play.batch(0, _PILOTS, pilot=True) for play in plays]
        means = [float(scores.moved(pilot).mean()) for pilot in pilots]
        longer = max(zip(means, plays, pilots, strict=True), key=lambda one: one[0])
        if best is not None and longer[0] <= 1.02 * best[0]:
            break  # later releases tell nothing more
        best = longer if longer[0] > 0.0 else None
        if best is not None and length >= _FEW:
            break
    if best is None:
        raise ArgumentError(
            "horizon must be longer: an audit attacks the first people, and within"
            f" {length:,} rounds {policy!r} does not release their rewards",
            "horizon",
        )
    _, play, pilot = best
    moved = float(scores.moved(pilot).max())
    return _Plan(replace(play, policy=policy), Scores(policy), moved, scores.losses(pilot))


def _lengths(policy: Policy, horizon: int | None) -> list[int]:
    """The horizons that are tried."""
    most = policy.planned_rounds
    if horizon is None:
        return sorted({min(length, most or length) for length in _HORIZONS})
    if most is not None and horizon > most:
        raise ArgumentError(
            f"horizon must be at most {most}, the rounds that {policy!r} is planned for, got"
            f" {horizon}",
            "horizon",
        )
    return [integer("horizon", horizon, 1, _LONGEST)]


# The bounds -------------------------------------------------------------------------------------


def _measured(seen: Seen, plan: _Plan, claim: Claim, alpha: float, *, secure: bool) -> pd.DataFrame:
    """One row for each score."""
    world, n = seen.world, len(seen.world)
    half, scores = n // 2, [("raw ratio", seen.raw, n // 5)]  # and how many runs chose their rule
    for name in ("releases", "decisions", "times", "finest bits"):
        features = getattr(seen, name.split()[-1])
        direction = discriminant(features[:half], world[:half])
        scores.append((name, features @ direction, half))
    counted = {name: secure or name not in _OF_FLOATS for name, _, _ in scores}
    each = (1.0 - _MOST_OF_ALPHA) * alpha / sum(counted.values())
    rows = [_ratio_row(seen, plan, claim, _MOST_OF_ALPHA * alpha)]
    for name, score, fitted in scores:
        bound = lower_bound(score, world, claim.measure, each, fitted)
        rows.append((name, bound, n - fitted, 1.0 - each, counted[name]))
    return pd.DataFrame(rows, columns=["score", "bound", "runs", "level", "counted"])


def _ratio_row(
    seen: Seen, plan: _Plan, claim: Claim, alpha: float
) -> tuple[str, float, int, float, bool]:
    """The row of the likelihood ratio.  Where its law is known, all runs count, by the best rule
    under that law.
    """
    n, name = len(seen.world), "likelihood ratio" + ("" if plan.scores.is_exact else ", nearly")
    if plan.losses is None:
        bound = lower_bound(seen.ratio, seen.world, claim.measure, alpha, n // 5)
        return name, bound, n - n // 5, 1.0 - alpha, True
    rule, _ = best_rule(plan.losses.of_runs(n / 2), claim.measure, alpha)
    wider = Rule(rule.low + 1e-8, rule.high - 1e-8)  # for scores that were rounded
    bound = proved(seen.ratio, seen.world, wider, claim.measure, alpha)
    return name, bound, n, 1.0 - alpha, True
