"""The wall: budgets, guarantees, channels, the ledger and the sources of noise."""

from .budgets import RDP, ZCDP, ApproxDP, Budget, PureDP
from .channels import Channel, Gaussian, Laplace, Open
from .guarantees import Guarantee
from .ledger import Ledger

__all__ = ["RDP", "ZCDP", "ApproxDP", "Budget", "Channel", "Gaussian", "Guarantee", "Laplace", "Ledger", "Open", "PureDP"]
