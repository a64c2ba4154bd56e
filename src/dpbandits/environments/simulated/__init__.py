"""Simulated environments, which draw rewards from a distribution."""
