"""Phased elimination on G-optimal designs."""

from .phased import DPDPE, GOPE, AdaCGOPE, AdaRGOPEVar, HannaGOPE, OutputGOPE

__all__ = ["DPDPE", "GOPE", "AdaCGOPE", "AdaRGOPEVar", "HannaGOPE", "OutputGOPE"]
