"""Linear bandits with public contexts, or with arms of fixed features."""
