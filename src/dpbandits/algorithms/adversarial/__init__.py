"""Learners for rewards that follow no law, on noisy losses of batches."""
