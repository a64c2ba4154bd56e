"""Environments that draw what they answer from a law."""
