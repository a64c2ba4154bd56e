"""Other policies, judged from logs of decisions."""
