"""Shared by families of algorithms: bases of policies, and kernels of statistics and schedules."""
