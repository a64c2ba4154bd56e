"""Studies: declared comparisons of policies, from a file to a folder of results."""

from .choosing import Choice, choose_for_experts
from .run import run_study
from .study import DEMO, Study, load_study

__all__ = ["DEMO", "Choice", "Study", "choose_for_experts", "load_study", "run_study"]
