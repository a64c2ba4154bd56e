"""Environments: what answers a pull, simulated or replayed from data."""

from .advice import AdviceEnvironment, AdviceTable, Advised, ClassifierAdvice, classifier_advice
from .base import ArmsEnvironment, ArmsKernels
from .contexts import ContextEnvironment, ContextKernels, ContextTable
from .doctor import DoctorBandit, DoctorReplay, actg175
from .labelled import Classification, classification
from .linear import GaussianContexts, LinearArms
from .listening import LastFM, lastfm
from .logged import LoggedTrial
from .losses import LateTurn, Piecewise, RewardFile, SineDrift, SwitchingBest
from .pools import PoolContexts, Recommendations
from .ratings import MovieLens, movielens
from .stochastic import Bernoulli, Beta, BoundedGaussian, Gaussian
from .tables import RewardTable

__all__ = [
    "AdviceEnvironment",
    "AdviceTable",
    "Advised",
    "ArmsEnvironment",
    "ArmsKernels",
    "Bernoulli",
    "Beta",
    "BoundedGaussian",
    "Classification",
    "ClassifierAdvice",
    "ContextEnvironment",
    "ContextKernels",
    "ContextTable",
    "DoctorBandit",
    "DoctorReplay",
    "Gaussian",
    "GaussianContexts",
    "LastFM",
    "LateTurn",
    "LinearArms",
    "LoggedTrial",
    "MovieLens",
    "Piecewise",
    "PoolContexts",
    "Recommendations",
    "RewardFile",
    "RewardTable",
    "SineDrift",
    "SwitchingBest",
    "actg175",
    "classification",
    "classifier_advice",
    "lastfm",
    "movielens",
]
