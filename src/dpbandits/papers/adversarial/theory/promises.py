"""Which bounds of ``theory`` hold for a policy in an environment."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ....algorithms import EXP3, EXP4, FTPL, HTINF, Adversarial, Experts, ExpertsLocal, FrozenEXP4
from ....algorithms.adversarial.learning import Learner
from ....algorithms.exp4.values import Tuning
from ....environments import Advised
from ....privacy import ApproxDP, PureDP
from ....theory.promises import Applied, World, promises_of
from ..exp4 import theorem_5, theorem_6, theorem_8
from ..policies import BatchedEXP4
from .upper_bounds import (
    batch_conversion,
    batched_exp4,
    exp3_conversion,
    exp4_regret,
    ftpl_conversion,
    htinf_conversion,
    improved_exp4,
    local_exp4,
    local_exp4_regret,
)


@promises_of(Adversarial, Experts)
def _in_batches(policy: Adversarial | Experts, world: World) -> Iterator[Applied]:
    if isinstance(policy.config["learner"], Learner):
        given = policy.bound_arguments
        learner_regret = np.vectorize(given["learner_regret"], otypes=[float])
        yield batch_conversion, {**given, "learner_regret": learner_regret}


@promises_of(EXP3, HTINF, FTPL)
def _as_published(policy: Adversarial, world: World) -> Iterator[Applied]:
    """Corollaries 1 to 3, where constants and batches are theirs."""
    params, budget = policy.params, policy.budget
    given = not math.isnan(params.rate) or not math.isnan(params.mixing) or params.tries > 0
    if given or not params.published or not isinstance(budget, PureDP) or budget.epsilon > 1.0:
        return
    if params.batch != math.ceil((1.0 - 1e-12) / budget.epsilon):
        return
    sizes = {"n_arms": policy.n_arms, "epsilon": budget.epsilon}
    if policy.preset == "HTINF":
        if params.sigma == math.sqrt(6.0) and params.alpha == 2.0:
            yield htinf_conversion, sizes
    elif policy.tuned_for is not None:
        corollary = exp3_conversion if policy.preset == "EXP3" else ftpl_conversion
        yield corollary, {**sizes, "tuned_for": policy.tuned_for}


@promises_of(EXP4, BatchedEXP4, FrozenEXP4)
def _mixture(policy: Experts, world: World) -> Iterator[Applied]:
    if policy.preset != "FrozenEXP4" or _is_kept_to(world, policy.batch_size):
        yield exp4_regret, policy.bound_arguments


def _is_kept_to(world: World, batch: int) -> bool:
    """Whether experts keep to their advice for a batch, as far as is known."""
    if isinstance(world.environment, Advised):
        state = world.environment.state
        return len(state.advice) == 1 or int(state.period[0]) % batch == 0
    return world.environment is None or batch == 1


@promises_of(BatchedEXP4)
def _composed_noise(policy: Experts, world: World) -> Iterator[Applied]:
    """Theorems 6 and 8, where noise and constants are theirs."""
    budget, tuned_for = policy.budget, policy.config["horizon"]
    if policy.calibration != "paper" or not isinstance(budget, ApproxDP):
        return
    sizes = {"n_arms": policy.n_arms, "n_experts": policy.n_experts}
    for theorem, function in ((theorem_6, batched_exp4), (theorem_8, improved_exp4)):
        found = theorem(
            **sizes, horizon=tuned_for, epsilon=budget.epsilon, log=-math.log(budget.delta)
        )
        if _is_run_with(policy, found):
            own = {"epsilon": budget.epsilon, "delta": budget.delta, "tuned_for": tuned_for}
            yield function, {**sizes, **own}


@promises_of(ExpertsLocal)
def _local(policy: ExpertsLocal, world: World) -> Iterator[Applied]:
    """And Theorem 5, where its constants are used."""
    yield local_exp4_regret, policy.bound_arguments
    budget, tuned_for = policy.budget, policy.config["horizon"]
    if isinstance(budget, PureDP):
        sizes = {"n_arms": policy.n_arms, "n_experts": policy.n_experts}
        if _is_run_with(policy, theorem_5(**sizes, horizon=tuned_for, noise=1.0 / budget.epsilon)):
            yield local_exp4, {**sizes, "epsilon": budget.epsilon, "tuned_for": tuned_for}


def _is_run_with(policy: Experts | ExpertsLocal, tuning: Tuning) -> bool:
    params = policy.params
    own = params.batch, params.rate, params.mixing
    return all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(own, tuning[:3], strict=True))
