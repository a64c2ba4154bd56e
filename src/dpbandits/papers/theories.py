"""The bounds of all papers: importing this module adds them to ``dpbandits.theory.BOUNDS``."""

from .adversarial import theory as adversarial
from .concentrated import theory as concentrated
from .dgs import theory as dgs
from .others import theory as others
from .shuffle import theory as shuffle

__all__ = ["adversarial", "concentrated", "dgs", "others", "shuffle"]
