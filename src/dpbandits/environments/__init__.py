"""Environments: what answers a pull, simulated or replayed from data."""

from .base import ArmsEnvironment, ArmsKernels
from .contexts import ContextEnvironment, ContextKernels, ContextTable
from .doctor import DoctorBandit, DoctorReplay, actg175
from .linear import GaussianContexts, LinearArms
from .logged import LoggedTrial
from .pools import PoolContexts, Recommendations
from .stochastic import Bernoulli, Beta, BoundedGaussian, Gaussian
from .tables import RewardTable

__all__ = [
    "ArmsEnvironment",
    "ArmsKernels",
    "Bernoulli",
    "Beta",
    "BoundedGaussian",
    "ContextEnvironment",
    "ContextKernels",
    "ContextTable",
    "DoctorBandit",
    "DoctorReplay",
    "Gaussian",
    "GaussianContexts",
    "LinearArms",
    "LoggedTrial",
    "PoolContexts",
    "Recommendations",
    "RewardTable",
    "actg175",
]
