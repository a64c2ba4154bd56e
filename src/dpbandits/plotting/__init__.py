"""Drawing and writing results: numbers, labels, colours, and curves of regret.

For text alone, import ``numbers``, ``labels`` and ``styles``; ``drawing`` and ``curves`` also
import matplotlib.
"""
