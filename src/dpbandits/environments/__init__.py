"""Environments: what answers a pull, simulated or replayed from data."""

from .base import ArmsEnvironment
from .stochastic import Bernoulli, Beta, BoundedGaussian, Gaussian
from .tables import RewardTable

__all__ = ["ArmsEnvironment", "Bernoulli", "Beta", "BoundedGaussian", "Gaussian", "RewardTable"]
