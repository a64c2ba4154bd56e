"""Mathematics that several algorithm families share."""
