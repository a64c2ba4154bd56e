"""Environments: what answers a pull, simulated or replayed from data."""

from .base import ArmsEnvironment, ArmsKernels
from .contexts import ContextEnvironment, ContextKernels, ContextTable
from .doctor import DoctorBandit, DoctorReplay, actg175
from .labelled import Classification, classification
from .linear import GaussianContexts, LinearArms
from .listening import LastFM, lastfm
from .logged import LoggedTrial
from .pools import PoolContexts, Recommendations
from .ratings import MovieLens, movielens
from .stochastic import Bernoulli, Beta, BoundedGaussian, Gaussian
from .tables import RewardTable

__all__ = [
    "ArmsEnvironment",
    "ArmsKernels",
    "Bernoulli",
    "Beta",
    "BoundedGaussian",
    "Classification",
    "ContextEnvironment",
    "ContextKernels",
    "ContextTable",
    "DoctorBandit",
    "DoctorReplay",
    "Gaussian",
    "GaussianContexts",
    "LastFM",
    "LinearArms",
    "LoggedTrial",
    "MovieLens",
    "PoolContexts",
    "Recommendations",
    "RewardTable",
    "actg175",
    "classification",
    "lastfm",
    "movielens",
]
