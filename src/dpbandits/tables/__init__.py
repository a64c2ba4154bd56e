"""Reading of tables and records: numbers, missing entries, and messages about mistakes.

All code that takes numbers in bulk uses this package: logs, features, outcomes, advice, and files
that commands read.  Arrays, pandas, Arrow, lists and text files follow one set of rules, and no
message holds a value of the data.
"""

from .columns import (
    Frame,
    TableLike,
    array,
    blocks,
    column,
    column_names,
    features,
    flat,
    frozen,
    is_missing,
    listed,
    numbered,
    refuse,
    table,
)
from .entries import Entries, as_numbers, entries, nested
from .manners import Manner
from .text_tables import TextTable, read_numbers, read_text_table

__all__ = [
    "Entries",
    "Frame",
    "Manner",
    "TableLike",
    "TextTable",
    "array",
    "as_numbers",
    "blocks",
    "column",
    "column_names",
    "entries",
    "features",
    "flat",
    "frozen",
    "is_missing",
    "listed",
    "nested",
    "numbered",
    "read_numbers",
    "read_text_table",
    "refuse",
    "table",
]
