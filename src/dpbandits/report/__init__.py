"""Reports: figures, tables, and one HTML page that opens offline."""

from .page import write
from .record import StudyRecord

__all__ = ["StudyRecord", "write"]
