"""One living policy: what happens between ``pull`` and ``update``, and the gate in the wall.

``session`` pulls, takes answers and releases; ``rounds`` knows who has answered and when, and
nothing of noise; ``state`` is what the algorithm knows on both sides of the wall; ``gate`` is where
a statistic crosses it, by the compiled ``steps`` of which simulations are made, too.  ``options``
are what every living policy is told, ``arms`` which may be served, ``intake`` the way of answers,
``estimates`` a look inside, ``exchange`` what workers share.
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
