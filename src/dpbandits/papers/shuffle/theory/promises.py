"""Which bounds of ``theory`` hold for a policy in an environment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....algorithms.glm.local import HiddenGLMLocal
from ....algorithms.hidden.joint import HiddenLinear
from ....algorithms.hidden.model import Params
from ....algorithms.hidden.policy import HiddenPolicy
from ....algorithms.hidden.shuffled import HiddenLinearShuffled
from ....environments import Environment
from ....privacy import ApproxDP
from ....shuffle import BitSum
from ....theory.promises import Applied, World, promises_of
from .bounds import (
    batched_joint,
    batched_local,
    diverse_local,
    perturbed_linucb,
    returning_bits,
    returning_joint,
    returning_reports,
    shuffled_bits,
    shuffled_reports,
)


@promises_of(HiddenPolicy)
def _by_the_template(policy: HiddenPolicy, world: World) -> Iterator[Applied]:
    """Lemma A.2 of policies that play it: published shift and radius, one level for all batches."""
    params = policy.params
    if not isinstance(params, Params):  # of generalised linear models
        return
    if not params.published or params.adds_up or params.growth > 0.0 or params.n_models > 1:
        return
    if world.environment is not None and not _is_linear(world.environment, policy):
        return
    plain = policy.reward_range == (0.0, 1.0) and params.radius_scale == 1.0
    if not plain or max(params.context_bound, params.parameter_bound) > 1.0:
        return
    # beta of the lemma is at least the radius that is played, whose logarithm has 3 in the place of
    # 1, but a quarter of it all, rewards being 1/2-subgaussian
    if params.subgaussian > 0.5 or 0.25 * params.dimension * math.log(3.0) > 0.75 * params.log_odds:
        return
    largest = params.largest * params.matrix_norm
    norms: dict[str, Any] = {"least": params.matrix_norm, "largest": largest}
    norms |= {"nu": params.vector_norm, "tuned_for": policy.tuned_for}
    own = {"dimension": params.dimension, "batch": params.batch, "failure": _failure(params)}
    yield perturbed_linucb, {**own, **norms}


def _failure(params: Params) -> float:
    """The lemma's alpha; each of its three parts fails with half of it."""
    return 2.0 * math.exp(-0.5 * params.log_odds)


def _is_linear(environment: Environment, policy: HiddenPolicy) -> bool:
    """Whether rewards are known to be linear in features as the policy takes them."""
    theta = getattr(environment, "parameter", None)
    link = getattr(environment, "link", None)
    if theta is None or np.ndim(theta) != 1 or (link is not None and link.name != "identity"):
        return False
    short = float(np.linalg.norm(theta)) <= policy.params.parameter_bound * (1.0 + 1e-9)
    return short and not policy.alters(getattr(environment, "context_bound", math.inf))


@promises_of(HiddenLinearShuffled)
def _as_published(policy: HiddenLinearShuffled, world: World) -> Iterator[Applied]:
    """The theorems of the paper, where shift, radius and noise are theirs: an order."""
    params, budget = policy.params, policy.budget
    published = params.published and policy.calibration == "paper"
    if not (published and isinstance(budget, ApproxDP)):
        return
    own = {"dimension": params.dimension, "epsilon": budget.epsilon, "delta": budget.delta}
    own |= {"batch": params.batch, "failure": _failure(params)}
    bits, most = isinstance(policy.protocol, BitSum), policy.max_rounds
    if policy.level == "local":
        if most is None and not bits:
            yield batched_local, own
    elif most is None:
        yield (shuffled_bits if bits else shuffled_reports), own
    elif most * params.batch >= (policy.tuned_for or math.inf):  # once in every batch
        yield (returning_bits if bits else returning_reports), own


@promises_of(HiddenLinear)
def _central(policy: HiddenLinear, world: World) -> Iterator[Applied]:
    params, budget = policy.params, policy.budget
    if not (params.published and isinstance(budget, ApproxDP)):
        return
    own = {"dimension": params.dimension, "epsilon": budget.epsilon, "delta": budget.delta}
    if policy.max_rounds is not None:
        yield returning_joint, {**own, "rounds": policy.max_rounds}
    else:
        yield batched_joint, {**own, "batch": params.batch, "failure": _failure(params)}


@promises_of(HiddenGLMLocal)
def _diverse(policy: HiddenGLMLocal, world: World) -> Iterator[Applied]:
    epsilon = getattr(policy.budget, "epsilon", None)
    if epsilon is not None:
        yield diverse_local, {"epsilon": epsilon}
