"""Linear bandits whose features are private, too."""
