"""The Python blocks of every page run, in order, as one script each."""

import re
from pathlib import Path

import matplotlib
import pytest
import typer

import dpbandits
from dpbandits import environments, privacy
from dpbandits.cli import app
from dpbandits.policies import protocol
from dpbandits.studies import load_study, run_study

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language="python"):
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL
    )


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name
)
def test_the_examples_run(page, monkeypatch):
    matplotlib.use("Agg")
    # an example may register a policy
    monkeypatch.setattr(protocol, "_REGISTRY", dict(protocol._REGISTRY))
    exec(compile("\n".join(blocks(page)), str(page), "exec"), {"__name__": "page"})


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "toml")], ids=lambda page: page.name
)
def test_the_study_files_run(page, tmp_path):
    for number, text in enumerate(blocks(page, "toml")):
        path = tmp_path / f"{number}.toml"
        path.write_text(text)
        study = load_study(path).altered(runs=1, horizon=100)
        assert set(run_study(study, n_jobs=1).result.runs["policy"]) == {
            policy.label for policy in study.policies
        }


@pytest.mark.parametrize(
    "module", [dpbandits, environments, privacy], ids=lambda module: module.__name__
)
def test_every_public_name_is_on_some_page(module):
    pages = "\n".join(page.read_text() for page in PAGES)
    assert [name for name in module.__all__ if not re.search(rf"\b{name}\b", pages)] == []


def test_every_command_is_on_the_page_of_studies():
    page = (ROOT / "docs" / "studies.md").read_text()
    names = typer.main.get_command(app).commands
    assert [name for name in names if f"`dpbandits {name}" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_contributed_algorithm_is_private_and_learns():
    import dpbandits as dpb

    scope = {"__name__": "page"}
    registry = dict(protocol._REGISTRY)
    try:
        exec("\n".join(blocks(ROOT / "CONTRIBUTING.md")), scope)
    finally:
        protocol._REGISTRY.clear()
        protocol._REGISTRY.update(registry)
    policy = scope["ExploreThenCommit"](3, length=50, budget=dpb.ZCDP(1.0))
    result = dpb.simulate(
        policy, dpb.environments.Bernoulli([0.9, 0.5, 0.1]), horizon=2000, runs=20
    )
    assert result.runs["spent"].to_numpy() == pytest.approx(1.0)
    assert result.runs["regret"].mean() < 0.1 * 2000
