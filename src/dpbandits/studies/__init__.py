"""Studies: declared comparisons of policies, from a file to a folder of results."""

from .engines import Dask, Processes
from .run import run_study
from .study import DEMO, Study, load_study

__all__ = ["DEMO", "Dask", "Processes", "Study", "load_study", "run_study"]
