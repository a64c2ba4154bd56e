"""What editors, ``help`` and type checkers know of policies."""

import inspect
import pydoc
import subprocess
import sys
from typing import get_args, get_type_hints

import pytest

import dpbandits as dpb
from dpbandits.policies import registered
from dpbandits.session.options import DEFAULTS


@pytest.mark.parametrize("name", registered())
def test_a_signature_lists_all_that_a_policy_takes_with_its_defaults(name):
    cls = registered()[name]
    parameters = inspect.signature(cls).parameters
    assert set(DEFAULTS) < set(parameters)
    assert not [one for one in parameters.values() if one.kind is one.VAR_KEYWORD]
    policy = cls(**cls.example, budget=None)
    assert set(policy._named[1]) <= set(parameters) | {"n_arms"}
    given = {name: one.default for name, one in parameters.items() if one.default is not one.empty}
    spelled_out = cls(**{"budget": None, **given, **cls.example})
    assert repr(spelled_out) == repr(policy)


@pytest.mark.parametrize(
    "name", [name for name, cls in registered().items() if isinstance(cls, type)]
)
def test_the_type_of_the_budget_is_what_the_card_says(name):
    cls = registered()[name]
    taken = get_type_hints(cls.__init__)["budget"]
    kinds = set(get_args(taken) or [taken]) - {type(None)}
    # Policies that take several notions say ``Budget``: the card knows which.
    assert kinds == {dpb.privacy.Budget} or kinds == set(cls.card.notions)


def test_a_class_of_ones_own_has_its_own_signature():
    class Fixed(dpb.Arms):
        def __init__(self, arms: int) -> None:
            super().__init__(arms, budget=None)

    assert list(inspect.signature(Fixed).parameters) == ["arms"]


def test_help_shows_the_shared_options():
    shown = pydoc.plain(pydoc.render_doc(dpb.Arms))
    assert "noise: Literal['simulation', 'secure'] = 'simulation'" in shown


MISTAKES = """
import dpbandits as dpb
import numpy as np
dpb.Arms(3, budget=dpb.ZCDP(1.0), noise="secured")
dpb.HiddenLinearShuffled(3, 2, horizon=100, budget=dpb.ZCDP(1.0))
dpb.Linear(3, 2, budget=dpb.ZCDP(1.0), horizon=10).pull()
dpb.Experts(3, 4, horizon=100, budget=dpb.ZCDP(1.0)).pull()
dpb.HiddenLinear(3, 2, horizon=10, budget=dpb.ZCDP(1.0)).pull()
dpb.algorithms.UCB1(3, budget=dpb.ZCDP(1.0))
dpb.Arms(3, budget=None, patients=2)
"""

CORRECT = """
import dpbandits as dpb
import numpy as np
arm: int = dpb.Arms(3, budget=dpb.ZCDP(1.0), noise="secure", answers_within=None).pull().arm
dpb.Linear(3, 2, budget=dpb.PureDP(1.0), horizon=10).pull(np.zeros((3, 2)))
dpb.HiddenLinear(3, 2, horizon=10, budget=None).pull([[0.0, 0.0]] * 3, user=None)
leader: int | None = dpb.algorithms.UCB1(3).estimates.leader
"""


@pytest.mark.long
def test_mypy_finds_the_mistakes_and_no_others(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "wrong.py").write_text(MISTAKES)
    (tmp_path / "right.py").write_text(CORRECT)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports"]
    command += ["--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    ran = subprocess.run(
        [*command, "wrong.py", "right.py"], cwd=tmp_path, capture_output=True, text=True
    )
    found = [line.split(": error: ")[0] for line in ran.stdout.splitlines() if ": error:" in line]
    assert found == [f"wrong.py:{line}" for line in range(4, 11)], ran.stdout + ran.stderr
