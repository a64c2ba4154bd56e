"""A session runs one policy: its pulls, answers and releases, and the gate in its wall.

``session`` pulls and takes answers: as they come (``arrivals``), or for releases at the end of
``episodes``.  ``running`` is what both work on.  ``choices`` chooses from released values;
``rounds`` knows which people have answered and when, and nothing of noise.  ``state`` holds the
algorithm's data on both sides of the wall.  At ``gate`` a statistic crosses the wall, by the
compiled ``steps`` that simulations use, too.  ``options`` are the arguments of every policy, and
``open_arms`` those that may be served.  ``intake`` processes answers, ``estimates`` shows results,
and ``exchange`` shares releases between workers.
"""

from .decisions import Decision
from .estimates import ArmEstimates, Diagnostics, Estimates
from .exchange import Release
from .options import Options
from .rounds import Choice
from .session import Session

__all__ = [
    "ArmEstimates",
    "Choice",
    "Decision",
    "Diagnostics",
    "Estimates",
    "Options",
    "Release",
    "Session",
]
