"""Environments: what answers a pull, simulated or replayed from data."""

from typing import Any

from ..rooms import PAPERS, lazily, moved
from .base import (
    AdviceEnvironment,
    ArmsEnvironment,
    ArmsKernels,
    ContextEnvironment,
    ContextKernels,
    Environment,
)
from .datasets.classification import Classification, classification
from .datasets.doctor import DoctorBandit, DoctorContexts, DoctorReplay, actg175
from .datasets.lastfm import LastFM, lastfm
from .datasets.logged import LoggedTrial
from .datasets.movielens import MovieLens, movielens
from .datasets.warfarin import Warfarin, warfarin
from .delays import Delay
from .simulated.advised import Advised
from .simulated.anchored import AnchoredContexts, CovariateArms
from .simulated.generalised import GLMContexts
from .simulated.linear_rewards import GaussianContexts, LinearArms
from .simulated.nonstationary import Piecewise, SineDrift, SwitchingBest
from .simulated.pools import PoolContexts, Recommendations
from .simulated.returning import ReturningUsers
from .simulated.stochastic import Bernoulli, Beta, BoundedGaussian, Gaussian, best_arm_instances
from .tabulated import AdviceTable, ContextTable, RewardFile, RewardTable

__all__ = [
    "AdviceEnvironment",
    "AdviceTable",
    "Advised",
    "AnchoredContexts",
    "ArmsEnvironment",
    "ArmsKernels",
    "Bernoulli",
    "Beta",
    "BoundedGaussian",
    "Classification",
    "ContextEnvironment",
    "ContextKernels",
    "ContextTable",
    "CovariateArms",
    "Delay",
    "DoctorBandit",
    "DoctorContexts",
    "DoctorReplay",
    "Environment",
    "GLMContexts",
    "Gaussian",
    "GaussianContexts",
    "HardArms",
    "HardContexts",
    "HardLinear",
    "LastFM",
    "LateTurn",
    "LinearArms",
    "LoggedTrial",
    "MovieLens",
    "Piecewise",
    "PoolContexts",
    "Recommendations",
    "ReturningUsers",
    "RewardFile",
    "RewardTable",
    "SineDrift",
    "SwitchingBest",
    "Warfarin",
    "actg175",
    "best_arm_instances",
    "classification",
    "lastfm",
    "movielens",
    "warfarin",
]
_OF_PAPERS = {
    **dict.fromkeys(("HardArms", "HardContexts", "HardLinear"), "concentrated.hard"),
    "LateTurn": "adversarial.late_turn",
}
_of_papers = lazily(__name__, _OF_PAPERS, within=PAPERS)
_moved = moved(
    __name__,
    {name: f"adversarial.{name}" for name in ("ClassifierAdvice", "classifier_advice")},
    away=3,
)


def __getattr__(name: str) -> Any:
    return _of_papers(name) if name in _OF_PAPERS else _moved(name)
