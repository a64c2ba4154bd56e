"""The Python blocks of every page run, in order, as one script each."""

import importlib.util
import inspect
import json
import logging
import os
import re
import signal
import subprocess
import sys
from dataclasses import fields
from inspect import ismodule
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
import typer
from scipy.stats import ks_2samp

import dpbandits
from dpbandits import (
    client,
    device,
    environments,
    finite,
    glm,
    parts,
    planning,
    privacy,
    shuffle,
    theory,
)
from dpbandits import policies as policy_terms
from dpbandits.algorithms.adversarial import learners
from dpbandits.cli import app
from dpbandits.policies import DEFAULTS, Preset, registered
from dpbandits.policies import registry as policies
from dpbandits.studies import load_study, run_study
from dpbandits.studies.engines import Processes

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


spec = importlib.util.spec_from_file_location("rooms", ROOT / "docs" / "rooms.py")
ROOMS = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ROOMS)


def name_of(page):
    return str(page.relative_to(ROOT))


def blocks(page, language="python"):
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL
    )


def in_place(page):
    """The examples in the lines where the page has them, in which numba looks for a kernel."""
    text = page.read_text()
    examples = re.finditer(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    placed = ""
    for example in examples:
        placed += "\n" * (text.count("\n", 0, example.start(1)) - placed.count("\n"))
        placed += example[1]
    return placed


def restored(monkeypatch):
    """Forget afterwards what an example registers."""
    monkeypatch.setattr(policies, "_REGISTRY", policies.registered())
    presets = {cls: list(names) for cls, names in policies._PRESETS.items()}
    monkeypatch.setattr(policies, "_PRESETS", presets)
    monkeypatch.setattr(learners, "_LEARNERS", dict(learners._LEARNERS))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.long] if page.parent != ROOT else [])
        for page in PAGES
        if blocks(page)
    ],
    ids=name_of,
)
def test_the_examples_run(page, monkeypatch, caplog):
    matplotlib.use("Agg")
    restored(monkeypatch)
    caplog.set_level(logging.NOTSET, "dpbandits")  # the level of before comes back afterwards
    handler = signal.getsignal(signal.SIGTERM)  # which an example replaces
    try:
        exec(compile(in_place(page), str(page), "exec"), {"__name__": "page"})
    finally:
        signal.signal(signal.SIGTERM, handler)


def test_the_page_of_parties_shows_the_epsilon_that_it_computes(capsys):
    page = ROOT / "docs" / "private-contexts" / "parties.md"
    exec(in_place(page), {"__name__": "page"})
    (shown,) = blocks(page, "text")
    assert capsys.readouterr().out == shown


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=name_of)
def test_the_study_files_run(page, tmp_path):
    for number, text in enumerate(blocks(page, "toml")):
        path = tmp_path / f"{number}.toml"
        path.write_text(text)
        study = load_study(path).altered(runs=1, horizon=100)
        assert set(run_study(study, engine=Processes(1)).result.runs["policy"]) == {
            policy.label for policy in study.policies
        }


@pytest.mark.parametrize(
    "module",
    [
        dpbandits,
        client,
        device,
        environments,
        finite,
        glm,
        parts,
        planning,
        privacy,
        shuffle,
        theory,
    ],
    ids=lambda module: module.__name__,
)
def test_every_public_name_is_on_some_page(module):
    pages = "\n".join(page.read_text() for page in PAGES)
    assert [name for name in module.__all__ if not re.search(rf"\b{name}\b", pages)] == []


def test_every_command_is_on_the_page_of_studies():
    page = (ROOT / "docs" / "studies.md").read_text()
    names = typer.main.get_command(app).commands
    assert [name for name in names if f"`dpbandits {name}" not in page] == []


def text_of(page):
    """What a page says, and a notebook between its cells of code."""
    if page.suffix == ".md":
        return page.read_text()
    cells = json.loads(page.read_text())["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


@pytest.mark.parametrize("page", PAGES + NOTEBOOKS, ids=name_of)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", text_of(page)):
        assert (page.parent / target).exists(), target


def test_links_to_sections_lead_to_one():
    for page in PAGES + NOTEBOOKS:
        for target, section in re.findall(r"\]\((?!https?://)([^)#]*)#([^)]+)\)", text_of(page)):
            there = page.parent / target if target else page
            headings = re.findall(r"^#+ (.*)$", text_of(there), flags=re.MULTILINE)
            slugs = {re.sub(r"[^\w\s-]", "", line).lower().replace(" ", "-") for line in headings}
            assert section in slugs, (page.name, target, section)


def test_notebooks_are_kept_without_outputs():
    assert len(NOTEBOOKS) >= 10  # `make docs` runs them
    for notebook in NOTEBOOKS:
        for cell in json.loads(notebook.read_text())["cells"]:
            kept = cell.get("outputs"), cell.get("execution_count")
            assert not any(kept), notebook.name


def test_every_public_name_is_in_the_reference():
    shown = [name for page in ROOMS.rooms() for name in page.names]
    assert len(shown) == len(set(shown))
    objects = [
        getattr(importlib.import_module(m), n) for m, _, n in (x.rpartition(".") for x in shown)
    ]
    classes = [one for one in objects if isinstance(one, type)]
    assert len(classes) == len(set(classes)) > 100  # no class has two pages
    ends = {name.rpartition(".")[2] for name in shown}
    for module in (
        dpbandits,
        client,
        device,
        environments,
        glm,
        parts,
        policy_terms,
        privacy,
        shuffle,
    ):
        wanted = {name for name in module.__all__ if not ismodule(getattr(module, name))}
        assert wanted - ends == set()


def test_code_in_the_glossary_is_in_the_package():
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    used = re.findall(r"`([^`]+)`", (ROOT / "docs" / "glossary.md").read_text())
    names = {name for code in used if code != "code" for name in re.findall(r"[A-Za-z_]\w+", code)}
    assert len(names) > 40
    assert [n for n in sorted(names - {"ours"}) if not re.search(rf"\b{n}\b", source)] == []


def test_the_store_of_the_page_is_the_one_that_is_tested():
    for tested in (ROOT / "tests" / "stores").glob("sqlite_store.py"):
        assert tested.read_text() in blocks(ROOT / "docs" / "serving" / "stores.md")


def test_the_first_table_has_every_word_of_bandit():
    page = (ROOT / "README.md").read_text()
    told = re.findall(r"^\| `(\w+)=", page, re.MULTILINE)
    words = set(inspect.signature(dpbandits.bandit).parameters) - {"arms", "options"}
    assert set(told) == words | {"reward_range"}  # an option


WORDS = {
    "PureDP": "pure DP",
    "ZCDP": "zCDP",
    "ApproxDP": "(ε, δ)-DP",
    "RDP": "RDP",
    "GDP": "GDP",
}


def test_the_table_of_classes_says_what_cards_do():
    page = (ROOT / "README.md").read_text().replace("all five", ", ".join(WORDS.values()))
    head = "| known before a choice | central | shuffle | local | budget | parts |\n"
    rows = page.partition(head)[2].partition("\n\n")[0].splitlines()[1:]
    assert 8 <= len(rows) <= 11
    shown = {}
    for row in rows:
        *cells, budgets, taken = (cell.strip() for cell in row.split("|")[2:-1])
        for trust, cell in zip(("central", "shuffle", "local"), cells, strict=True):
            for name in re.findall(r"`(\w+)`", cell):
                notions = {one for one in WORDS.values() if one in said_of(trust, budgets)}
                shown[name] = trust, notions, re.findall(r"`(\w+)`", said_of(trust, taken))
    presets = [one for one in registered().values() if isinstance(one, Preset)]
    classes = {preset.policy_class for preset in presets}
    assert {cls.__name__ for cls in classes} <= set(dpbandits.__all__)
    # Defaults that take no parts have no presets.
    classes |= {one.policy_class for one in DEFAULTS if isinstance(one.policy_class, type)}
    found = {}
    for cls in classes:
        own = [one for one in presets if one.policy_class is cls] or [cls]
        cards = [one.card for one in own if one.card.notions]
        (trust,) = {card.trust_model for card in cards}
        notions = {WORDS[kind.__name__] for card in cards for kind in card.notions}
        found[cls.__name__] = (trust, notions, parts_taken(cls))
    assert shown == found


def said_of(trust, cell):
    """What a cell of the table says of one trust: "all of this; local: something else"."""
    usual, *others = cell.split("; ")
    return dict(one.split(": ") for one in others).get(trust, usual)


def parts_taken(cls):
    """Arguments of a class whose values are parts, in their order."""
    kinds = [getattr(parts, name) for name in parts.__all__]
    names = {one.__name__ for one in kinds if isinstance(one, type)} | {"Learner", "Mixture"}
    return [
        name
        for name, one in inspect.signature(cls).parameters.items()
        if set(re.findall(r"\w+", str(one.annotation))) & names
    ]


def test_the_page_of_policies_has_a_table_for_every_class():
    page = (ROOT / "docs" / "policies.md").read_text()
    named = [n for line in re.findall(r"<!-- names of (.*?) -->", page) for n in line.split()]
    presets = [one for one in registered().values() if isinstance(one, Preset)]
    assert sorted(named) == sorted({preset.policy_class.__name__ for preset in presets})
    assert "<!-- other names -->" in page
    made = "\n".join(map(ROOMS.table_of_presets, named, named)) + ROOMS.table_of_others("cards")
    listed = re.findall(r"^\| \[`(\w+)`\]", made, re.MULTILINE)
    assert sorted(listed) == sorted(registered())


def test_the_page_of_policies_names_every_part_with_its_arguments():
    page = (ROOT / "docs" / "policies.md").read_text()
    for name in parts.__all__:
        kind = getattr(parts, name)
        bases = {parts.Part, parts.Index, parts.Memory, parts.Batches, parts.Registered}
        if isinstance(kind, type) and kind not in bases:
            (written,) = set(re.findall(rf"`{name}\(([^`=]*)\)`", page))
            known = [one.name for one in fields(kind)]
            given = [one for one in written.split(", ") if one]
            assert given == known or (given[-1] == "..." and given[:-1] == known[: len(given) - 1])


@pytest.mark.long
def test_the_index_of_the_guide_passes_its_tests(tmp_path):
    page = (ROOT / "docs" / "your-own-policy.md").read_text()
    files = re.findall(r'^```python title="(\w+\.py)"\n(.*?)^```', page, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in files] == ["my_index.py", "test_my_index.py"]
    for name, text in files:
        (tmp_path / name).write_text(text)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    assert "4 passed" in ran.stdout


# The algorithm of the author's guide -----------------------------------------------------------


@pytest.fixture
def contributed(monkeypatch):
    """What the blocks of the guide define: a policy, and its textbook reference."""
    restored(monkeypatch)
    scope = {"__name__": "page"}
    exec("\n".join(blocks(ROOT / "CONTRIBUTING.md")), scope)
    return SimpleNamespace(**scope)


def test_the_contributed_algorithm_has_the_regret_of_its_reference(contributed):
    budget, means, horizon = dpbandits.ZCDP(0.05), np.array([0.75, 0.6, 0.3]), 5010
    result = dpbandits.simulate(
        contributed.BatchUCB(3, batch=20, budget=budget),
        environments.Bernoulli(means),
        horizon=horizon,
        runs=1000,
    )
    assert result.runs["spent"].to_numpy() == pytest.approx(0.05)
    theirs = contributed.batch_ucb(budget, means, horizon, 1000, np.random.default_rng(1))
    assert ks_2samp(result.runs["regret"].round(6), theirs.round(6)).pvalue > 1e-4
    wrong = contributed.batch_ucb(
        dpbandits.ZCDP(0.025), means, horizon, 1000, np.random.default_rng(1)
    )
    assert ks_2samp(result.runs["regret"].round(6), wrong.round(6)).pvalue < 1e-4


def test_the_contributed_algorithm_counts_rounds_as_the_guide_says(contributed):
    policy = contributed.BatchUCB(3, batch=20, budget=None)
    once, thrice = policy.new_state().public, policy.new_state().public
    for public, rounds in ((once, [2]), (thrice, [3, -1])):
        for n in rounds:
            policy.kernels.record_pull(policy.params, public, 1, 0, n)
    assert [side.tolist() for side in once] == [side.tolist() for side in thrice]


def test_the_contributed_learner_learns_behind_the_conversion(contributed):
    policy = dpbandits.algorithms.BatchConversion(3, learner="greedy", budget=dpbandits.PureDP(1.0))
    world = environments.Bernoulli([0.9, 0.5, 0.1])
    runs = dpbandits.simulate(policy, world, horizon=5000, runs=20).runs
    assert runs["spent"].to_numpy() == pytest.approx(1.0)
    assert runs["regret"].mean() < 0.1 * 5000  # uniform play loses 0.4 a round


@pytest.mark.long
def test_the_contributed_algorithm_passes_the_conformance_suite(tmp_path):
    known = "\n\n\ndef pytest_collection_finish():\n    import references\n\n"
    known += "    references.REFERENCES['BatchUCB'] = batch_ucb\n"
    (tmp_path / "contributed.py").write_text("\n".join(blocks(ROOT / "CONTRIBUTING.md")) + known)
    command = [sys.executable, "-m", "pytest", "tests/conformance", "-k", "BatchUCB"]
    ran = subprocess.run(
        [*command, "-p", "contributed", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", ran.stdout)[1]) > 80
