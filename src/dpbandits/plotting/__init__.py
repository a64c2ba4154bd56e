"""Drawing and writing results: numbers, labels, colours, and curves of regret.

Whoever writes only imports ``numbers``, ``labels`` and ``styles``; ``drawing`` and ``curves`` bring
matplotlib with them.
"""
