"""Generalised linear bandits."""
