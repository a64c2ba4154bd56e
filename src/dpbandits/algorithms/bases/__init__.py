"""What families of algorithms share: bases of policies, and kernels of statistics and schedules."""
