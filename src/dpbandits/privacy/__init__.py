"""The wall: budgets, guarantees, channels, continual sums, the ledger, noise, and shuffling."""

from ..rooms import moved
from .amplification import Amplification, gaussian_shuffle_amplification, shuffle_amplification
from .budgets import GDP, RDP, ZCDP, ApproxDP, Budget, PureDP, notion
from .channels import Certified, Channel, Gaussian, Hemisphere, Laplace, LaplaceVector, Open
from .continual import (
    BinaryTree,
    BufferedToeplitz,
    Counter,
    HonakerTree,
    HybridTree,
    Independent,
    SqrtToeplitz,
    overshoot,
    smat,
    svec,
)
from .continual_sum import ContinualSum
from .guarantees import Guarantee
from .ledger import Ledger
from .meaning import Meaning
from .randomiser import SymmetricChannel, VectorChannel

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "Amplification",
    "ApproxDP",
    "BinaryTree",
    "Budget",
    "BufferedToeplitz",
    "Certified",
    "Channel",
    "ContinualSum",
    "Counter",
    "Gaussian",
    "Guarantee",
    "Hemisphere",
    "HonakerTree",
    "HybridTree",
    "Independent",
    "Laplace",
    "LaplaceVector",
    "Ledger",
    "Meaning",
    "Open",
    "PureDP",
    "SqrtToeplitz",
    "SymmetricChannel",
    "VectorChannel",
    "gaussian_shuffle_amplification",
    "notion",
    "overshoot",
    "shuffle_amplification",
    "smat",
    "svec",
]

__getattr__ = moved(__name__, {"wishart": "shuffle.wishart_noise"})
