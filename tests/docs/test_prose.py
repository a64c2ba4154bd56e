"""Prose stays plain: sentences are short, and turns of phrase that readers stumble over are rare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest
from prose import ROOT, docstrings, messages, pages, sentences

SOURCES = sorted((ROOT / "src").rglob("*.py"))
CORPORA: dict[str, Callable[[], Iterable[str]]] = {
    "pages": lambda: (path.read_text() for path in pages()),
    "docstrings": lambda: (said for path in SOURCES for said in docstrings(path)),
    "messages": lambda: (said for path in SOURCES for said in messages(path)),
}
# What readers stumble over, as patterns.
STUMBLING = {
    "so that": r"\bso that\b",
    "a clause for a noun": r"\bwhat (is|was|are|were|has|had|comes|leaves)\b",
    "she": r"\b(she|hers?|herself)\b",
    "he": r"\b(he|his|him|himself)\b",
    "whoever": r"\bwhoever\b",
    "owes nothing": r"\bowes? nothing\b",
}


class Limits(NamedTuple):
    """Of a corpus: mean words of a sentence, per cent with more than 30, stumbling blocks in 10,000
    words.
    """

    mean: float
    long: float
    stumbling: float


LIMITS = {
    "pages": Limits(13.0, 1.5, 2.0),
    "docstrings": Limits(15.0, 4.5, 2.0),
    "messages": Limits(12.0, 2.0, 3.0),
}


def found(texts: Iterable[str]) -> Limits:
    said = [sentence for text in texts for sentence in sentences(text)]
    lengths = [len(sentence.split()) for sentence in said]
    blocks = sum(
        len(re.findall(pattern, sentence, re.IGNORECASE))
        for sentence in said
        for pattern in STUMBLING.values()
    )
    return Limits(
        sum(lengths) / len(said),
        100.0 * sum(length > 30 for length in lengths) / len(said),
        1e4 * blocks / sum(lengths),
    )


@pytest.mark.parametrize("corpus", CORPORA)
def test_prose_is_plain(corpus: str):
    texts, limits = list(CORPORA[corpus]()), LIMITS[corpus]
    measured = found(texts)
    assert all(one <= most for one, most in zip(measured, limits, strict=True)), (measured, limits)


def test_a_longer_way_to_say_it_is_noticed():
    plain = "The policy releases a noisy sum. It learns from that sum alone."
    wordy = "What is released is a sum, so that whoever asks owes nothing to her data."
    assert found([plain]).stumbling == 0.0
    assert found([wordy]).stumbling > 1000.0
    assert found([" ".join([*["word"] * 31, "ends."])]).long == 100.0


def test_no_docstring_begins_with_a_comparison():
    begun = [said for said in CORPORA["docstrings"]() if said.startswith("The same")]
    assert begun == []


def test_code_and_tables_are_no_prose():
    page = "# A title\n\n| a | table |\n\n```python\nx = 1\n```\n\n* One item here.\n* Another item here.\n"
    assert list(sentences(page)) == ["One item here.", "Another item here."]
