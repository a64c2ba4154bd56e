"""Optimism on privately released episode sums: AdaC-UCB (Azize & Basu 2024, Algorithm 4), AdaP-UCB
and AdaP-KLUCB (2022).

An arm is played for an episode as long as all its rounds before; the first episode of each arm is
one round.

What crosses the wall: when an episode ends, the sum of its rewards.  One person contributes one
reward to one episode, so a record moves one sum by at most ``hi - lo``, and episodes are disjoint
sets of records: each sum may spend the whole budget.  Which episode a record falls into, and how
long it is, depends on sums released before it only (Azize & Basu 2024, Theorem 12).

An episode is a batch of people who all play one arm, so that its sum may come from a shuffler, with
the noise that their devices have added: AdaP-UCB and AdaP-KLUCB have a form for that.
"""

from __future__ import annotations

from typing import NamedTuple, Unpack

import numpy as np

from ..calls import is_open
from ..kernel import Generator, Kernel, Vector, kernel
from ..policies import ArmEstimates, Card, Kernels, Options, Policy, Statistic, register
from ..privacy.budgets import Budget, PureDP
from ..protocol import Contexts
from ..session.estimates import standard_error
from ..validation import flag, real
from .bases.episodes import CLOCK, MEMO, absorb_rounds, close, record_pull_of, release_due
from .bases.errata import ADAC_UCB, ADAP_UCB
from .bases.shuffled import ShuffledPolicy, shuffled_card
from .bases.sums import accumulate, sensitivity, summarise
from .maths.divergences import kl_upper_bound


class DoublingParams(NamedTuple):
    n_arms: int
    optimism: float  # beta of AdaC-UCB, alpha of the AdaP family
    forget: bool  # estimate from the last episode of an arm only
    width: float  # hi - lo
    low: float
    noise_scale: float  # of the noise on a sum: standard deviation (Gaussian) or scale (Laplace)


class DoublingRaw(NamedTuple):
    total: np.ndarray  # (1,) sum of the rewards of the running episode


class DoublingPublic(NamedTuple):
    estimate: np.ndarray  # (K,) released mean
    weight: np.ndarray  # (K,) one over its variance proxy
    length: np.ndarray  # (K,) rounds in the arm's last episode that was released
    # (2, K) weight and length as they will be when all finished episodes are released
    awaited: np.ndarray
    pulls: np.ndarray  # (K,) rounds in all its finished episodes
    clock: np.ndarray  # (4,) see ``bases.episodes``


def init(params: DoublingParams) -> tuple[DoublingRaw, DoublingPublic]:
    k = params.n_arms
    public = DoublingPublic(
        estimate=np.full(k, params.low),
        weight=np.zeros(k),
        length=np.zeros(k, np.int64),
        awaited=np.zeros((2, k)),
        pulls=np.zeros(k, np.int64),
        clock=np.zeros(4, np.int64),
    )
    return DoublingRaw(np.zeros(1)), public


@kernel
def choose_gaussian(
    params: DoublingParams, public: DoublingPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of highest index; arms that were never played come first.

    The index is estimate + sqrt(2 v beta log t) with the variance proxy v of the estimate, t the
    number of the coming round.  With n the true length of the arm's last episode and s the noise on
    a sum, v = w^2 / 4n + s^2 / n^2, which is eq. (14) of the paper for rewards in [0, 1].  (The
    paper writes N/2 for n, which is wrong in the first two episodes of an arm.)
    """
    pressure = 2.0 * params.optimism * np.log(public.clock[CLOCK.rounds] + 1.0)
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        if public.pulls[a] == 0:
            return a, 1.0
        index = public.estimate[a] + np.sqrt(pressure / public.awaited[0, a])
        if index > best:
            best, arm = index, a
    return arm, 1.0


@kernel
def choose_laplace(
    params: DoublingParams, public: DoublingPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of highest index mean + w sqrt(alpha ln t / 2n) + alpha s ln t / n, with s the scale
    of the noise on a sum.
    """
    pressure = params.optimism * np.log(public.clock[CLOCK.rounds] + 1.0)
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        n = public.awaited[1, a]
        if n == 0:
            return a, 1.0
        index = (
            public.estimate[a]
            + params.width * np.sqrt(0.5 * pressure / n)
            + params.noise_scale * pressure / n
        )
        if index > best:
            best, arm = index, a
    return arm, 1.0


@kernel
def choose_kl(
    params: DoublingParams, public: DoublingPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of highest q with n kl(m, q) <= alpha ln t, where m is the mean plus alpha s ln t /
    n, scaled and clipped to [0, 1].

    Clipping makes many indices 1.  Such ties, which the paper leaves open, go to the arm with the
    shorter last episode: to the first arm they would go again and again, for ever longer episodes.
    """
    pressure = params.optimism * np.log(public.clock[CLOCK.rounds] + 1.0)
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        n = public.awaited[1, a]
        if n == 0:
            return a, 1.0
        raised = (
            public.estimate[a] + params.noise_scale * pressure / n - params.low
        ) / params.width
        index = kl_upper_bound(min(max(raised, 0.0), 1.0), pressure / n)
        if index > best or (index == best and n < public.awaited[1, arm]):
            best, arm = index, a
    return arm, 1.0


@kernel
def hold_rounds(params: DoublingParams, public: DoublingPublic, arm: int) -> int:
    return max(public.pulls[arm], 1)


record_pull = record_pull_of(hold_rounds)


@kernel
def weight_of(params: DoublingParams, n: float) -> float:
    """One over the variance proxy of the mean of an episode."""
    return 1.0 / (params.width**2 / (4.0 * n) + (params.noise_scale / n) ** 2)


@kernel
def await_episode(params: DoublingParams, public: DoublingPublic, memo: Vector) -> None:
    arm, n = int(memo[MEMO.arm]), memo[MEMO.size]
    before = 0.0 if params.forget else public.awaited[0, arm]
    public.awaited[0, arm], public.awaited[1, arm] = before + weight_of(params, n), n


@kernel
def close_and_await(params: DoublingParams, public: DoublingPublic, memo: Vector) -> None:
    """Until an episode is released its rounds count, as if they repeated the arm's estimate."""
    close(params, public, memo)
    await_episode(params, public, memo)


@kernel
def publish(params: DoublingParams, public: DoublingPublic, memo: Vector, release: Vector) -> None:
    arm, n = int(memo[MEMO.arm]), memo[MEMO.size]
    mean, weight = release[0] / n, weight_of(params, n)
    if params.forget:
        public.estimate[arm], public.weight[arm] = mean, weight
    else:
        # Inverse-variance average of all episodes: post-processing, and never worse than the last
        # one alone.
        public.weight[arm] += weight
        public.estimate[arm] += (mean - public.estimate[arm]) * weight / public.weight[arm]
    public.length[arm] = n


@kernel
def absorb(params: DoublingParams, public: DoublingPublic, memo: Vector, release: Vector) -> None:
    """An episode of another worker."""
    absorb_rounds(params, public, memo)
    await_episode(params, public, memo)
    publish(params, public, memo, release)


def _kernels(choose: Kernel) -> Kernels:
    return Kernels(
        init=init,
        choose=choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        close=close_and_await,
        summarise=summarise,
        publish=publish,
        absorb=absorb,
        skips_closed=True,
    )


class _Doubling(Policy):
    """What the policies of this file share."""

    learns_off_policy = True

    def _statistic(self) -> Statistic:
        return Statistic.of_rewards(self.reward_range, memo=len(MEMO))

    def _params(self) -> DoublingParams:
        lo, hi = self.reward_range
        return DoublingParams(
            n_arms=self.n_arms,
            optimism=self._optimism,
            forget=self._forget,
            width=hi - lo,
            low=lo,
            noise_scale=self.noise_scale,
        )

    @staticmethod
    def _arm_estimates(params: DoublingParams, public: DoublingPublic) -> ArmEstimates:
        known = public.length > 0
        # one over the variance proxy, where noise is normal
        errors = np.sqrt(1.0 / np.where(known, public.weight, np.nan))
        rounds = public.length if params.forget else public.pulls
        return ArmEstimates(np.where(known, public.estimate, np.nan), errors, rounds)

    _optimism: float
    _forget: bool = True


@register(n_arms=3)
class AdaCUCB(_Doubling):
    """UCB on the noisy mean of each arm's last episode (Azize & Basu 2024, Algorithm 4).

    Plays arg max of ``mean + noise + sqrt((w^2 / 2n + 2 s^2 / n^2) beta log t)``, with ``n`` the
    length of the arm's last episode, ``w`` the width of the reward range and ``s`` the standard
    deviation of the noise on its sum.

    Args:
        n_arms: number of arms.
        budget: of any notion but ``PureDP``; None for the non-private counterpart.
        beta: optimism.  The regret theorem needs more than 3; the paper's experiments, and
            practice, do better with 1.
        forget: True as published.  False estimates from all released episodes, weighted by inverse
            variance, at no privacy cost.
        **options: see ``Options``.

    When to choose: a regret theorem under zCDP or (epsilon, delta)-DP; ``MergedIMED`` has far lower
    regret.

    Example:
        >>> from dpbandits import ZCDP
        >>> policy = AdaCUCB(3, budget=ZCDP(0.5), seed=1)
        >>> decision = policy.pull()
        >>> policy.update(1.0)
        True
    """

    card = Card(
        title="UCB on noisy episode sums (zCDP)",
        source="Azize & Basu (2024), Concentrated Differential Privacy for Bandits, Theorem 12",
        noise=("Gaussian",),
        errata=(ADAC_UCB,),
    )
    kernels = _kernels(choose_gaussian)

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        beta: float = 1.0,
        forget: bool = True,
        **options: Unpack[Options],
    ) -> None:
        self._optimism = real("beta", beta, 0.0, strict=True)
        self._forget = flag("forget", forget)
        super().__init__(
            {"n_arms": n_arms, "beta": self._optimism, "forget": forget}, budget=budget, **options
        )


class _Heavy(_Doubling):
    """With Laplace noise, whose variance is twice the square of its scale."""

    @staticmethod
    def _arm_estimates(params: DoublingParams, public: DoublingPublic) -> ArmEstimates:
        variance = 2.0 * params.noise_scale**2
        errors = standard_error(public.length, params.width, variance)
        return _Doubling._arm_estimates(params, public)._replace(errors=errors)


class _AdaP(_Heavy):
    """The pure-DP policies, which differ in their index only."""

    def __init__(
        self, n_arms: int, *, budget: PureDP | None, alpha: float = 3.1, **options: Unpack[Options]
    ) -> None:
        self._optimism = real("alpha", alpha, 0.0, strict=True)
        super().__init__({"n_arms": n_arms, "alpha": self._optimism}, budget=budget, **options)


@register(n_arms=3)
class AdaPUCB(_AdaP):
    """UCB on the mean of each arm's last episode with Laplace noise (Azize & Basu 2022, AdaP-UCB).

    Plays arg max of ``mean + noise + w sqrt(alpha ln t / 2n) + alpha s ln t / n``, with ``n`` the
    length of the arm's last episode, ``w`` the width of the reward range and ``s`` the scale of the
    noise on its sum.

    Args:
        n_arms: number of arms.
        budget: ``PureDP``; None for the non-private counterpart.
        alpha: optimism.  The regret theorem needs more than 3.
        **options: see ``Options``.

    When to choose: pure differential privacy with a regret theorem of textbook form; ``AdaPKLUCB``
    has lower regret.

    Example:
        >>> AdaPUCB(3, budget=PureDP(1.0), seed=1).pull().arm
        0
    """

    card = Card(
        title="UCB on noisy episode sums (pure DP)",
        source=(
            "Azize & Basu (2022), AdaP-UCB; parallel composition as in Azize & Basu (2024),"
            " Appendix D"
        ),
        noise=("Laplace",),
        errata=(ADAP_UCB,),
    )
    kernels = _kernels(choose_laplace)


@register(n_arms=3)
class AdaPKLUCB(_AdaP):
    """KL-UCB on the mean of each arm's last episode with Laplace noise (Azize & Basu 2022,
    AdaP-KLUCB).

    Plays arg max of the largest q with ``n kl(m, q) <= alpha ln t``, where ``m`` is the noisy mean
    plus ``alpha s ln t / n``, scaled and clipped to [0, 1].

    Args:
        n_arms: number of arms.
        budget: ``PureDP``; None for the non-private counterpart.
        alpha: optimism.  The regret theorem needs more than 3.
        **options: see ``Options``.

    When to choose: pure differential privacy, rewards 0 or 1 or nearly so.

    Example:
        >>> AdaPKLUCB(3, budget=PureDP(1.0), seed=1).pull().arm
        0
    """

    card = Card(
        title="KL-UCB on noisy episode sums (pure DP)",
        source=(
            "Azize & Basu (2022), AdaP-UCB; parallel composition as in Azize & Basu (2024),"
            " Appendix D"
        ),
        noise=("Laplace",),
        errata=(ADAP_UCB,),
    )
    kernels = _kernels(choose_kl)


class _AdaPSDP(_Heavy, ShuffledPolicy):
    """The same where the people of an episode add the noise."""

    def __init__(
        self,
        n_arms: int,
        *,
        budget: PureDP | None,
        alpha: float = 3.1,
        messages: bool = False,
        dropout: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        self._optimism = real("alpha", alpha, 0.0, strict=True)
        own = {"n_arms": n_arms, "alpha": self._optimism}
        own |= self._shuffled(messages, dropout, options)
        super().__init__(own, budget=budget, **options)


@register(n_arms=3)
class AdaPUCBSDP(_AdaPSDP):
    """AdaP-UCB on sums that a shuffler has added up, with the Laplace noise of the central model
    (Azize & Basu 2022; shares of noise as in Chowdhury & Zhou 2023).

    With ``messages=True`` this is the server: all people of a batch play ``device().arm``, their
    devices report what came of it, and what left the ``shuffler()`` goes to ``receive``.  The
    server sees no reward; secure aggregation may stand in the shuffler's place.  Without, whoever
    calls ``pull`` and ``update`` sees rewards, and is trusted with them.

    Args:
        n_arms: number of arms.
        budget: ``PureDP``; None for the non-private counterpart.
        alpha: optimism.  The regret theorem needs more than 3.
        messages: whether this is the server of a shuffler.
        dropout: of each batch this share of the people, at most, may leave out their noise, or
            tell the server what it was.  If nobody does, there is more noise than indices know of,
            and than simulations draw.
        **options: see ``Options``.

    When to choose: nobody is to be trusted with rewards, and central regret is wanted all the same.

    Example:
        >>> server = AdaPUCBSDP(2, budget=PureDP(1.0), messages=True, seed=1)
        >>> for rewards in ([1.0], [0.0], [0.0], [1.0], [1.0, 0.0]):
        ...     device, shuffler = server.device(), server.shuffler()
        ...     for person, reward in enumerate(rewards[: server.protocol.batch]):
        ...         shuffler.submit(device.report(reward), sender=person)
        ...     learned = server.receive(shuffler.close())
        >>> server.ledger.releases
        5
    """

    card = shuffled_card(AdaPUCB.card)
    kernels = AdaPUCB.kernels


@register(n_arms=3)
class AdaPKLUCBSDP(_AdaPSDP):
    """AdaP-KLUCB on sums that a shuffler has added up: as ``AdaPUCBSDP``, with the index of
    ``AdaPKLUCB``.

    Args:
        n_arms: number of arms.
        budget: ``PureDP``; None for the non-private counterpart.
        alpha: optimism.  The regret theorem needs more than 3.
        messages: whether this is the server of a shuffler.
        dropout: see ``AdaPUCBSDP``.
        **options: see ``Options``.

    When to choose: the same, for rewards 0 or 1 or nearly so.

    Example:
        >>> server = AdaPKLUCBSDP(3, budget=PureDP(1.0), messages=True, seed=1)
        >>> server.device().arm, server.protocol.batch
        (0, 1)
    """

    card = shuffled_card(AdaPKLUCB.card)
    kernels = AdaPKLUCB.kernels
