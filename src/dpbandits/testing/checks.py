"""What every policy has to keep.  Each check plays a policy and raises an AssertionError that names
the kernel and the rule; the suite of this package runs the same ones over all registered policies.

``make`` is a policy without its last arguments: ``make(seed=1)`` gives a fresh instance, and
options replace its own.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from ..algorithms.bases import ContextualPolicy
from ..errors import ArgumentError, BudgetExhausted
from ..kernel import plain
from ..policies import Decision, Kernels, Policy, load
from ..policies.options import DEFAULTS
from ..policies.steps import cross_by
from ..policies.watch import Watch
from ..privacy.continual import HonakerTree
from . import streams
from .walk import (
    ROUNDS,
    Walk,
    contexts_of,
    frozen,
    play,
    pull,
    releases,
    require,
    shown,
    snapshot,
    spans,
)

Make = Callable[..., Policy]

ARGUMENTS = {
    "init": "params",
    "prepare": "params public contexts rng",
    "choose": "params public contexts rng",
    "hold_rounds": "params public arm",
    "preprocess_contexts": "params contexts seen rng",
    "record_pull": "params public arm x n",
    "weigh": "params public arm x",
    "accumulate": "params raw arm x reward n",
    "release_due": "params public",
    "partition": "params public",
    "sensitivity": "params public norm",
    "close": "params public memo",
    "summarise": "params raw public memo statistic",
    "publish": "params public memo release",
    "estimate": "params public i",
    "absorb": "params public memo release",
    "restart": "params raw public",
    "stop": "params public",
    "recommend": "params public",
}
RELEASES = 5
GRID = 64  # rewards are multiples of width / 64 with dyadic ends: sums of them are exact
_DRAWS = 20_000  # of a choice, whose frequencies are compared with propensities
_PATIENT = 2000  # pulls, at most, for further releases
_FAR = 5.0  # standard deviations: by chance with a probability of 6e-7
_BAD = {
    "n_arms": 0,
    "reward_range": (1, 0),
    "default_reward": math.nan,
    "patience": -1,
    "seed": -1,
    "clip": 1,
    "noise": "none",
    "max_rounds": 0,
}
_LATE = "release_due: no release in 3,000 rounds; smaller arguments may release sooner"
_DRAWN = np.random.default_rng(8).random(ROUNDS)  # rewards in [0, 1]


# The wall -------------------------------------------------------------------------------------


def kernels_take_their_arguments(kernels: Kernels) -> None:
    """What decides has no argument through which raw data could come."""
    for name, arguments in ARGUMENTS.items():
        taken = " ".join(inspect.signature(plain(getattr(kernels, name))).parameters)
        require(taken == arguments, f"{name} takes ({taken}), where the protocol has ({arguments})")


def sides_share_no_memory(make: Make) -> None:
    """An array of the private side is none of the public one."""
    arrays = make().new_state().arrays
    private = ("raw.", "wall.statistic", "wall.running.total", "wall.running.memory")
    secrets = {name for name in arrays if name.startswith(private)}
    for name, other in itertools.product(secrets, set(arrays) - secrets):
        apart = not np.shares_memory(arrays[name], arrays[other])
        require(apart, f"init: {name} and {other} share memory, so that raw data cross the wall")


def deciding_changes_nothing(make: Make, seed: int = 0, noise: float = 1.0) -> None:
    """Kernels that read the public side leave it as it is: the walk looks after every call."""
    walk, rng = Walk(make(), noise=noise, seed=seed), np.random.default_rng(seed)
    walk.until(4, lambda first, arm, n: [float(rng.binomial(n, 0.5))])


def nobody_reads_old_scratch(make: Make) -> None:
    """What an earlier call has left in working memory changes nothing."""
    require(_walked(make, spoil=True) == _walked(make), "a kernel reads what was left in scratch")


def randomness_comes_from_rng(make: Make) -> None:
    """Kernels draw from their argument ``rng``, or not at all."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002  (what kernels would draw from)
    found = []
    try:
        for seed in (1, 2):
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            found.append(_walked(make))
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
    rule = "a kernel draws random numbers of its own: only rng, of prepare, choose and"
    require(found[0] == found[1], f"{rule} preprocess_contexts, may be drawn from")


def _walked(make: Make, *, spoil: bool = False) -> tuple[Any, ...]:
    """All that a walk leaves behind."""
    walk, rng = Walk(make(), seed=4, spoil=spoil), np.random.default_rng(4)
    seen = walk.until(6, lambda first, arm, n: [float(rng.binomial(n, 0.5))])
    return walk.arms.tolist(), [r.statistics[0].tolist() for r in seen], frozen(walk.public)


# Sensitivity ----------------------------------------------------------------------------------


class Movement(NamedTuple):
    """How far a changed record moves a release."""

    distance: float
    covered: bool  # whether the ledger says that the release covers it
    bound: float


def movements(
    policy: Policy,
    *,
    seed: int,
    noise: float,
    where: float,
    values: list[int],
    new: int | None,
    longer: float = 1.0,
    kernels: Kernels | None = None,
) -> list[Movement]:
    """How the record at the fraction ``where`` of a random history moves every release when it
    becomes ``new``.

    Rewards are drawn from ``values``, in grid steps above the lower end; ``new`` = None turns the
    record to the other end.  Contexts, where there are any, are ``longer`` than the policy's bound
    by this factor.
    """
    corners = contexts_of(policy, corners=True)
    contexts = (
        longer * policy.context_bound * corners
        if isinstance(policy, ContextualPolicy) and corners is not None
        else corners
    )
    lo, hi = policy.reward_range
    step = (hi - lo) / GRID
    table = np.random.default_rng([seed, 1]).choice(values, ROUNDS)
    sums = np.concatenate([[0], np.cumsum(table)])

    def total(first: int, n: int) -> float:
        return n * lo + step * float(sums[first + n] - sums[first])

    rehearsal = Walk(policy, noise=noise, seed=seed, contexts=contexts, kernels=kernels)
    rehearsed = rehearsal.until(RELEASES, lambda first, arm, n: [total(first, n)])
    row = int(where * (rehearsed[-1].last + 1))  # a search that is over releases nothing more
    shift = step * float((GRID - table[row] if new is None else new) - table[row])
    walk = Walk(policy, worlds=2, noise=noise, seed=seed, contexts=contexts, kernels=kernels)
    seen = walk.until(
        RELEASES,
        lambda first, arm, n: [
            total(first, n),
            total(first, n) + (shift if first <= row < first + n else 0.0),
        ],
    )
    return [
        Movement(
            float(np.linalg.norm(r.statistics[1] - r.statistics[0], policy.channel.norm)),
            walk.covers(r, row),
            r.bound,
        )
        for r in seen
    ]


def a_record_moves_one_release(moved: list[Movement], slack: float = 0.0) -> None:
    """It is in one release, which it moves by at most the bound, and moves no other."""
    require(
        sum(one.covered for one in moved) <= 1,
        "partition: two releases cover one record, which is paid for once",
    )
    for one in moved:
        require(
            one.covered or one.distance == 0.0,
            f"summarise: a record moves a release that does not cover it, by {one.distance:g}; what"
            " was released once has to be forgotten",
        )
        require(
            one.distance <= one.bound * (1 + slack) or not one.covered,
            f"sensitivity: a record moves a release by {one.distance:g}, and {one.bound:g} was"
            " declared",
        )


def records_stay_within_the_bound(make: Make, seeds: range = range(6)) -> None:
    """One reward is replaced in random histories, also by the default of a missing answer."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        low, wide = float(rng.choice([-8.0, 0.0, 0.5])), float(rng.choice([0.25, 1.0, 16.0]))
        policy = make(reward_range=(low, low + wide))
        where, noise = rng.random(), float(rng.choice([0.0, 1.0, 1e6]))
        histories = [([0, GRID], None), (list(range(GRID + 1)), 0)]  # 0: the default reward
        for values, new in histories:
            moved = movements(policy, seed=seed, noise=noise, where=where, values=values, new=new)
            a_record_moves_one_release(moved, 1e-9)


def statistic_of(policy: Policy, features: np.ndarray, reward: float, arm: int = 0) -> np.ndarray:
    """What one person's record is in the statistic, after scaling and clipping."""
    state, lo_hi = policy.new_state(), policy.reward_range
    seen = policy._preprocessed(np.tile(features, (policy.n_arms, 1)))
    kernels, statistic = policy.driven, np.full(policy.statistic.size, np.nan)
    value = policy._noise.to_grid(float(np.clip(reward, *lo_hi)))
    kernels.accumulate(policy.params, state.raw, arm, seen[arm], value, 1)
    kernels.summarise(policy.params, state.raw, state.public, state.memo, statistic)
    return statistic


def features_stay_within_the_bound(
    policy: ContextualPolicy, rng: np.random.Generator, longer: float = 1.5, pairs: int = 20
) -> None:
    """Where features are private, two records of any features, arms and rewards are no farther
    apart than the bound.
    """
    (lo, hi), bound = policy.reward_range, policy.context_bound
    most = policy.statistic.max_sensitivity
    for _ in range(pairs):
        lengths = bound * rng.choice([longer, *rng.uniform(size=2)], (2, 1))
        directions = rng.standard_normal((2, policy.dimension))
        one, other = lengths * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        rewards = rng.choice([lo, hi, rng.uniform(lo, hi)], 2)
        arms = rng.integers(0, policy.n_arms, 2)
        pair = zip((one, other), rewards, arms, strict=True)
        distance = np.subtract(*(statistic_of(policy, x, r, int(a)) for x, r, a in pair))
        moved = float(np.linalg.norm(distance))
        require(
            moved <= most * (1 + 1e-12),
            f"sensitivity: a record with its features moves a release by {moved:g}, and {most:g}"
            " was declared",
        )


class Watched(NamedTuple):
    """What a history has left on the public side."""

    public: list[tuple[bytes, ...]]  # after every round
    ends: list[bool]  # whether a release was due then
    draws: str  # where the generator of all choices stands


def watch(policy: Policy, contexts: np.ndarray, reward: float, released: int = 3) -> Watched:
    """Play with these contexts, and force the same releases whatever was collected."""
    walk, noisy = Walk(policy, contexts=contexts), np.random.default_rng(5)
    public: list[tuple[bytes, ...]] = []
    ends: list[bool] = []
    while sum(ends) < released:
        rng = walk.rng if policy.card.randomised else None
        seen = walk._seen(rng)
        walk._call("prepare", walk.params, walk.public, seen, rng)
        arm = walk._read("choose", walk.params, walk.public, seen, rng)[0]
        walk._call("record_pull", walk.params, walk.public, arm, seen[arm], 1)
        x = seen[arm].copy()
        walk._read("weigh", walk.params, walk.public, arm, x)
        walk._read("accumulate", walk.params, walk.raws[0], arm, x, reward, 1)
        walk.rounds += 1
        ends.append(bool(walk._read("release_due", walk.params, walk.public)))
        if ends[-1]:
            walk._call("close", walk.params, walk.public, walk.memo)
            release = 10.0 * noisy.standard_normal(policy.statistic.size)
            walk._call("publish", walk.params, walk.public, walk.memo, release)
        public.append(frozen(walk.public))
    return Watched(public, ends, str(walk.rng.bit_generator.state))


def private_features_leave_no_trace(make: Make) -> None:
    """Other features and rewards leave the public side and the schedule alone."""
    contexts = contexts_of(make())
    assert contexts is not None
    one, other = watch(make(), contexts, 0.0), watch(make(), -0.5 * contexts[::-1], 1.0)
    require(one == other, "the public side, or the schedule, depends on private features")


# The schedule ---------------------------------------------------------------------------------


def with_fixed_releases(policy: Policy) -> Policy:
    """The policy with numbers in place of its releases that no reward enters: what else differs
    then is timing.
    """
    rng, gate = np.random.default_rng(10), policy.session.gate
    policy._watch = Watch.silent()

    def fixed(running: Any, _: int, scale: float, statistic: Any, release: Any, __: Any) -> None:
        release[:] = rng.normal(scale=5.0, size=release.size)

    def silent(*_: Any) -> None: ...

    cross, end = cross_by(gate.kernels, fixed, silent, silent), gate.steps.end

    def release(
        params: Any, raw: Any, public: Any, memo: Any, wall: Any, rounds: int, _: Any
    ) -> bool:
        first, part, bound = end(params, raw, public, memo, wall, wall.statistic, rounds)
        cross(params, public, memo, wall, wall.statistic, first, rounds - 1, part, bound, _)
        return True

    gate.steps = gate.steps._replace(release=release, cross=cross)
    return policy


def schedule_owes_nothing_to_answers(make: Make, patience: int = 0) -> None:
    """Of a policy that releases at the end of episodes: whoever answers what, and when, releases
    and choices are the same as long as what is released is.
    """

    def history(answer: bool, seed: int) -> tuple[list[Any], list[Any]]:
        policy = with_fixed_releases(make(patience=patience, seed=1))
        rng = np.random.default_rng(seed)
        pulled: list[tuple[int, bool, int]] = []
        open_ones: list[Decision] = []
        while releases(policy) < 6 and len(pulled) < 3_000:
            decision = pull(policy)
            pulled.append((decision.arm, decision.recorded, releases(policy)))
            open_ones.append(decision)
            if answer:
                policy.update(rng.random(), open_ones.pop())
            elif rng.random() < 0.3:  # some answers, late and in any order; the others never come
                policy.update(1.0, open_ones.pop(rng.integers(len(open_ones))))
        require(
            releases(policy) >= 1, "release_due: no release in 3,000 rounds; take smaller arguments"
        )
        return spans(policy), pulled

    first = history(True, 1)
    same = first == history(True, 2) and first == history(False, 3)
    require(same, "release_due: a release, or a choice, depends on answers that are not released")


def pulls_are_learned_from_in_order(make: Make) -> None:
    """Of a policy that learns at once: with patience the t-th pull is learned from at the pull
    after three more, whether it was answered or not.
    """

    def history(answers: float, seed: int) -> list[Any]:
        policy = make(patience=3, seed=1)
        rng, waiting, seen = np.random.default_rng(seed), [], []
        for number in range(12):
            waiting.append(pull(policy))
            seen.append((waiting[-1].recorded, releases(policy), policy.rounds))
            require(policy.rounds == max(number - 3, 0), "record_pull: rounds are miscounted")
            while waiting and rng.random() < answers:
                late = waiting.pop(rng.integers(len(waiting)))
                in_time = late.number >= number - 3
                require(policy.update(rng.random(), late) is in_time, "a late answer is taken")
        return [*seen, spans(policy)]

    first = history(0.5, 1)
    same = first == history(0.7, 2) and first == history(0.0, 3)
    require(same, "release_due: the schedule depends on answers")


# The ledger -----------------------------------------------------------------------------------


def _reward(policy: Policy) -> Callable[[Decision], float]:
    """A reward for every decision, the same in each policy."""
    lo, hi = policy.reward_range
    return lambda decision: lo + (hi - lo) * float(_DRAWN[decision.number])


def budget_is_spent_once(make: Make) -> None:
    """The first release spends the budget, and later ones nothing more."""
    policy = make(seed=3)
    meter = policy.meter
    assert meter is not None
    require(policy.ledger.spent() is None, "something was released before any round")
    for k in (1, 2):
        try:
            play(policy, _reward(policy), until=k)
        except BudgetExhausted as error:
            raise AssertionError(f"sensitivity, partition or channel: {error}") from error
        total = policy.ledger.total()
        kept = math.isclose(total, meter.limit, rel_tol=1e-9) and meter.allows(total)
        require(
            kept,
            f"partition: after {k} releases a record has cost {total:g}, and the budget allows"
            f" {meter.limit:g}",
        )


def draws_belong_to_releases(make: Make) -> None:
    """Noise is drawn for every coordinate of a release, and only then."""
    policy = make(seed=4)
    length, counter, reward = policy.statistic.size, policy.statistic.counter, _reward(policy)
    source = policy.session.state.noise_rng
    require(source is not None, "the policy has a budget, and no noise")
    assert source is not None
    bits = source.bit_generator
    drawn, made, number = bits.state, 0, 0

    def looked() -> None:
        nonlocal drawn, made
        if releases(policy) > made:
            require(bits.state != drawn, "a release was made without noise")
        else:
            require(bits.state == drawn, "noise was drawn without a release")
        drawn, made = bits.state, releases(policy)

    while made < (4 if counter else 2):
        decision = pull(policy)
        looked()
        policy.update(reward(decision), decision)
        looked()
        number += 1
        require(number < ROUNDS, f"release_due: no release in {ROUNDS:,} rounds")
    # The refined tree has a noise of its own for every node: those of a full one, less what is not
    # full.
    nodes = 2 * made - made.bit_count() if isinstance(counter, HonakerTree) else made
    all_draws = policy.ledger.draws
    require(
        all_draws == length * nodes, f"{all_draws} draws for {made} releases of {length} numbers"
    )


# Saving ---------------------------------------------------------------------------------------


def _go_on(policy: Policy, further: int) -> None:
    """Play until so many further releases, or for as long as a search or a long episode lets us."""
    until, reward = releases(policy) + further, _reward(policy)
    for _ in range(_PATIENT if further else 0):
        decision = pull(policy)
        if releases(policy) == until:
            return
        policy.update(reward(decision), decision)


def saved_policies_go_on(make: Make, folder: Path) -> None:
    """A saved policy comes back bit by bit, and plays on as if nothing had happened."""
    policy = make(seed=1)
    play(policy, _reward(policy), until=1)
    copy = load(policy.save(folder / "saved"), simulation=True)
    require(repr(copy) == repr(policy), f"config: {policy!r} comes back as {copy!r}")
    for further in (0, 2):
        for one in (policy, copy):
            _go_on(one, further)
        sides = zip(snapshot(policy).items(), snapshot(copy).values(), strict=True)
        lost = [name for (name, mine), other in sides if mine != other]
        require(
            not lost,
            f"save: {', '.join(lost)} come back otherwise; a state is made of arrays, and all"
            " arguments belong into config",
        )


def what_a_crash_loses_is_charged(make: Make, folder: Path) -> None:
    """What was released after the last save counts as spent, and the budget still holds."""
    policy = make(seed=1)
    play(policy, _reward(policy), until=1)
    path = policy.save(folder / "crashed")
    _go_on(policy, 2)
    survivor, meter = load(path, simulation=True), policy.meter
    told = survivor.ledger.frame.equals(policy.ledger.frame)
    require(told, "restart: the ledger does not come back after a crash")
    _go_on(survivor, 1)
    within = meter is None or meter.allows(survivor.ledger.total())
    require(within, "restart: after a crash the budget is exceeded")


# One truth ------------------------------------------------------------------------------------


def loop_and_hand_play_alike(make: Make, rounds: int = 0) -> list[int]:
    """The compiled loop, ``pull`` with ``update``, and both in plain Python play the same arms."""
    policy = make()
    world = streams.table(policy, rounds or (400 if policy.card.learns_at_once else streams.ROUNDS))
    played = {
        f"{how.__name__}, {'compiled' if fast else 'interpreted'}": how(
            make(), world, compiled=fast
        )
        for how in (streams.looped, streams.by_hand)
        for fast in (True, False)
    }
    first, *others = played.items()
    for name, arms in others:
        require(arms == first[1], f"{first[0]} and {name} play other arms")
    return first[1]


@contextlib.contextmanager
def culprits_named(make: Make) -> Iterator[None]:
    """Where code does not compile, say which kernel is to blame: those that allocate do not."""
    try:
        yield
    except numba.NumbaError as error:
        raise AssertionError(_culprit(make()) or str(error)) from error


def _culprit(policy: Policy) -> str:
    """The first kernel that does not compile for what it is called with."""
    walk, seen = Walk(policy), dict[str, tuple[Any, ...]]()
    call = walk._call

    def noted(name: str, *arguments: Any) -> Any:
        seen.setdefault(name, arguments)
        return call(name, *arguments)

    walk._call = noted  # type: ignore[method-assign]
    walk.until(1, lambda first, arm, n: [0.0])
    for name, arguments in seen.items():
        given = [walk.rng if one is None else one for one in arguments]
        kernel = getattr(policy.driven, name)
        try:
            if name != "init" and hasattr(kernel, "compile"):
                kernel.compile(tuple(map(numba.typeof, given)))
        except numba.NumbaError as error:
            lines = str(error).splitlines()
            return f"{name} does not compile; kernels allocate nothing: {' '.join(lines[1:3])}"
    return ""


def propensities_are_frequencies(make: Make) -> None:
    """What ``choose`` says of how probable an arm was is how often it is drawn."""
    policy = make()
    draws = _DRAWS if policy.card.randomised else 2  # which have to agree
    walk, rng = Walk(policy, seed=2), np.random.default_rng(2)
    for number in range(21):
        if walk.rounds == ROUNDS:
            return
        walk.step(lambda first, arm, n: [float(rng.binomial(n, 0.5))])
        if number % 10 or walk.rounds == ROUNDS:
            continue
        seen = walk._seen(walk.rng)
        walk._call("prepare", walk.params, walk.public, seen, walk.rng)
        choices = [
            walk._read("choose", walk.params, walk.public, seen, walk.rng) for _ in range(draws)
        ]
        for arm, told in set(choices):
            if math.isnan(told):
                continue
            count = sum(one[0] == arm for one in choices)
            error = math.sqrt(draws * max(told * (1 - told), 0.0))
            require(
                0.0 < told <= 1.0 + 1e-12 and abs(count - draws * told) <= _FAR * error + 0.5,
                f"choose: arm {arm} was drawn {count} times in {draws}, with propensity {told:g}",
            )


# Arms, arguments, words -----------------------------------------------------------------------


def pull_among(policy: Policy, rng: np.random.Generator) -> tuple[Decision, list[int]]:
    """A pull of one person, and the arms that were open to her: often some, and of some
    candidates.
    """
    count, contexts = policy.n_arms, contexts_of(policy)
    candidates = int(rng.integers(1, count + 1)) if contexts is not None else count
    there = [arm for arm in range(candidates) if arm not in policy.retired]
    asked = [arm for arm in range(count) if rng.random() < 0.6]
    available = asked if set(asked) & set(there) else None
    if not there:
        candidates, there = count, [arm for arm in range(count) if arm not in policy.retired]
    number = policy.session.rounds.pulls
    given = None if contexts is None else shown(policy, contexts[number])[:candidates]
    decision = policy.pull(given, available=available)
    return decision, there if available is None else [arm for arm in there if arm in asked]


def closed_arms_are_never_chosen(
    policy: Policy, rounds: int = 150, each: Callable[[int], None] = lambda number: None
) -> list[tuple[Decision, list[int]]]:
    """Among arms of which some are closed, an open one; ``each`` may change which are.  All
    decisions, with the arms that were open.
    """
    rng, seen = np.random.default_rng(1), []
    for number in range(rounds):
        each(number)
        decision, open_ones = pull_among(policy, rng)
        told = decision.propensity
        require(decision.arm in open_ones, f"choose: arm {decision.arm} is closed")
        require(told is None or 0.0 < told <= 1.0, f"choose: the propensity is {told}")
        policy.update(float(rng.random() < 0.5), decision)
        seen.append((decision, open_ones))
    return seen


def refuses(make: Make, name: str, value: Any) -> None:
    """A bad argument is refused with an ArgumentError that begins with its name."""
    try:
        make(**{name: value})
    except ArgumentError as error:
        named = str(error).startswith(name)
        require(named, f"{name}={value!r} is refused, but not by its name: {error}")
    else:
        raise AssertionError(f"{name}={value!r} is not refused with an ArgumentError")


def bad_arguments_are_refused(make: Make) -> None:
    """Options that all policies have, numbers of its own, and what it does not know."""
    config = make()._config
    own = {
        name: math.nan
        for name, value in config.items()
        if name not in DEFAULTS and isinstance(value, int | float) and not isinstance(value, bool)
    }
    for name, value in {**_BAD, **own}.items():
        if name in config:
            refuses(make, name, value)
    try:
        make(no_such_argument=1)
    except TypeError as error:
        require("no_such_argument" in str(error), f"a TypeError has to name the argument: {error}")
    else:
        raise AssertionError("an argument that the policy does not know is not refused")


def docstring_says_what_is_taken(cls: type[Policy]) -> None:
    """A summary, every argument of its own, and when to choose it."""
    text = inspect.getdoc(cls) or ""
    for part in ("Args:", "When to choose:"):
        require(part in text, f"the docstring of {cls.__name__} has no {part!r}")
    for name, one in inspect.signature(cls.__init__).parameters.items():
        own = name != "self" and one.kind is not one.VAR_KEYWORD
        known = not own or re.search(rf"\b{name}\b", text) is not None
        require(known, f"the docstring of {cls.__name__} does not tell of {name}")
