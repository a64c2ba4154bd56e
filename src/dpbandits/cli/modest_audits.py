"""Modest audits of all policies, for their cards: few runs, kept until the code changes.

Secure noise is drawn one number at a time, outside of compiled code: an attack on it would take
hours for a site.  The audits attack the compiled loop with simulated noise, which has the law of
secure noise (``privacy.discrete``), and the sentences say so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from ..errors import ArgumentError
from ..policies import registered
from ..source import code_digest

RUNS = 250  # per world; `dpbandits audit` plays 20,000
JOBS = 2
_TASKS = 16  # of a process, which then makes room for another


class Finding(NamedTuple):
    """A card's statement about an audit."""

    sentence: str


def modest_audits(kept: Path, jobs: int = JOBS) -> Mapping[str, Finding]:
    """A finding for every policy that has a budget, by name.  ``kept`` is a folder with findings;
    those of the present code are read, and those of other code are replaced.
    """
    names = [name for name, cls in registered().items() if cls.example_budgets()]
    words = (code_digest(), RUNS, names)
    file = kept / f"{sha256(repr(words).encode()).hexdigest()[:24]}.json"
    if not file.is_file():
        _keep(file, _played(names, jobs))
    told = json.loads(file.read_text(encoding="utf-8"))
    return {name: Finding(sentence) for name, sentence in told.items()}


def finding(name: str) -> str:
    """The finding of a modest audit of one policy, in a sentence, or the reason for none."""
    from ..auditing import audit

    cls = registered()[name]
    policy = cls(**cls.example, budget=next(iter(cls.example_budgets())), noise="simulation")
    try:
        return audit(policy, runs=RUNS, n_jobs=1).sentence
    except ArgumentError as error:
        return f"not audited: {error}"


def _played(names: list[str], jobs: int) -> dict[str, str]:
    # Processes, because to compile holds the lock of the interpreter; of those that joblib starts
    # some would end half way, for all the memory that compiled loops take.
    with get_context("spawn").Pool(jobs, maxtasksperchild=_TASKS) as pool:
        return dict(zip(names, pool.map(finding, names, chunksize=1), strict=True))


def _keep(file: Path, found: Mapping[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
    for old in file.parent.glob("*.json"):
        old.unlink(missing_ok=True)
    unfinished.replace(file)
