"""Searches for the best arm."""
