"""Logs of decisions: written while a policy serves, and learned from by another."""

from .decision_log import DecisionLog
from .fitting import Fitted, fit_logs
from .folders import read_logs

__all__ = ["DecisionLog", "Fitted", "fit_logs", "read_logs"]
