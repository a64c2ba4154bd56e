"""Rooms of papers: what is in them, who loads them, and former homes of names."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dpbandits as dpb
from dpbandits import papers
from dpbandits.policies import find, registered
from dpbandits.policies.registry import home_of

SOURCE = Path(dpb.__path__[0]).parent
OF_PAPERS = {
    name: cls for name, cls in registered().items() if home_of(cls).startswith("dpbandits.papers.")
}

# Nothing of a paper is loaded by what needs none of it.
PROGRAM = """
import sys
import dpbandits as dpb
policy = dpb.bandit(2, budget=dpb.ZCDP(1.0), seed=1)
policy.update(1.0, policy.pull())
from dpbandits.policies import default_for, find
find("MergedIMED"), default_for().policy_class
print([name for name in sys.modules if name.startswith("dpbandits.papers")])
dpb.policies.registered()
print("dpbandits.papers.dgs.policy" in sys.modules, "dpbandits.papers.dgs.theory" in sys.modules)
"""


def test_papers_are_loaded_when_they_are_asked_for_and_not_before():
    program = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        program, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE)}
    )
    assert done.stdout.splitlines() == ["[]", "True False"]


def test_every_room_has_what_it_names():
    assert {home_of(cls).split(".")[2] for cls in OF_PAPERS.values()} <= set(papers.__all__)
    for room in papers.__all__:
        module = getattr(papers, room)
        assert module.__doc__
        for name in module.__all__:
            assert getattr(module, name).__name__ == name
        with pytest.raises(AttributeError, match=f"{room}' has no attribute 'nothing'"):
            _ = module.nothing
    for name, cls in OF_PAPERS.items():
        assert name in import_module(home_of(cls).rpartition(".")[0]).__all__


@pytest.mark.parametrize("name", OF_PAPERS)
def test_former_names_of_policies_say_where_they_are(name: str):
    cls = OF_PAPERS[name]
    room = home_of(cls).split(".")[2]
    with pytest.deprecated_call(match=rf"dpbandits\.papers\.{room}\.{name}$") as told:
        assert getattr(dpb, name) is cls is find(name)
    assert told[0].filename == __file__  # where whoever asked will look


@pytest.mark.parametrize(
    ("module", "name", "home"),
    [
        ("environments", "ClassifierAdvice", "adversarial.ClassifierAdvice"),
        ("environments", "classifier_advice", "adversarial.classifier_advice"),
        ("glm", "InformationWeightedGLM", "glm.InformationWeightedGLM"),
        ("privacy", "wishart", "shuffle.wishart_noise"),
        ("theory", "adversarial", "adversarial.theory"),
        ("theory", "concentrated", "concentrated.theory"),
        ("theory", "dynamic", "dgs.theory"),
        ("theory", "shuffle", "shuffle.theory"),
    ],
)
def test_other_former_names_do_so_too(module: str, name: str, home: str):
    room, _, within = home.partition(".")
    with pytest.deprecated_call(
        match=rf"dpbandits\.{module}\.{name} .* dpbandits\.papers\.{home}$"
    ):
        found = getattr(import_module(f"dpbandits.{module}"), name)
    assert found is getattr(getattr(papers, room), within)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = import_module(f"dpbandits.{module}").nothing


def test_an_unknown_policy_is_none():
    with pytest.raises(dpb.ArgumentError, match="there is no policy 'DPSEE'; did you mean DPSE"):
        find("DPSEE")
    with pytest.raises(AttributeError, match="did you mean MergedIMED"):
        _ = dpb.MergdIMED
