"""Pages of the site that are made when it is built, so that none of them is kept twice.

They are files of the repository's root, notebooks with their outputs, and the reference.  MkDocs
calls the functions whose names begin with on_.
"""

import inspect
import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

import dpbandits

ROOT = Path(__file__).parents[1]
LOG = logging.getLogger("mkdocs.hooks")  # whose warnings are errors in a strict build

# Files of the root, and their pages.  MkDocs takes a README for the index of its folder.
OUTSIDE = {
    "README": "overview",
    "CONTRIBUTING": "contributing",
    "SECURITY": "security",
    "CHANGELOG": "changelog",
}

# Rooms that users do not call.
INNER = {"cli", "html", "plotting", "report", "validation", "calls"}

# Which algorithms share a page, by their module; the others play finite arms.
FAMILIES = {
    "adversarial": "adversaries and experts",
    "exp4": "adversaries and experts",
    "dgs": "contexts",
    "fixed_linucb": "contexts",
    "linucb": "contexts",
    "merged_linear": "contexts",
    "oful": "contexts",
    "phased": "contexts",
    "glm": "generalised linear models",
    "private_contexts": "private contexts",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    made = {f"{page}.md": outside(name) for name, page in OUTSIDE.items()}
    reference = reference_pages()
    for path, content in {**made, **notebook_pages(config), **reference}.items():
        files.append(File.generated(config, path, content=content))
    for section in config.nav or []:
        if "Reference" in section:
            section["Reference"] = list(reference)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files of the root, and to notebooks, to their pages."""
    markdown = re.sub(
        rf"(\]\((?:\.\./)*?)(?:\.\./)?({'|'.join(OUTSIDE)})(?=\.md)",
        lambda link: link[1] + OUTSIDE[link[2]],
        markdown,
    )
    return re.sub(r"\.ipynb\)(?!\{)", ".md)", markdown)  # but for the button of the notebook


def outside(name: str) -> str:
    """The text of a file of the root, with links as they are in docs/."""
    return (ROOT / f"{name}.md").read_text().replace("](docs/", "](")


# Notebooks ---------------------------------------------------------------------------------------


def notebook_pages(config: MkDocsConfig) -> dict[str, str | bytes]:
    """Every notebook, run from its first cell to its last, and its figures."""
    paths = sorted(Path(config.docs_dir).rglob("*.ipynb"))
    with ThreadPoolExecutor(2) as pool:  # each waits for a process of its own
        return dict(page for pages in pool.map(run_notebook, paths) for page in pages)


def run_notebook(path: Path) -> list[tuple[str, str | bytes]]:
    """One notebook as a page, and the files of its outputs."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=300,
        resources={"metadata": {"path": path.parent}},
        extra_arguments=["--log-level=ERROR"],
    )
    client.execute()
    for output in (o for cell in notebook.cells for o in cell.get("outputs", [])):
        if output.get("name") == "stderr":
            LOG.warning("%s writes to stderr: %s", path.name, output["text"])
    body, resources = MarkdownExporter().from_notebook_node(
        notebook, resources={"unique_key": path.stem}
    )
    title, text = body.replace("![png]", "![Figure]").split("\n", 1)
    link = f"[This page as a notebook]({path.name}){{.md-button}}"
    here = path.relative_to(ROOT / "docs").parent
    files = {f"{path.stem}.md": f"{title}\n{text}\n\n{link}\n", **resources["outputs"]}
    return [(str(here / name), content) for name, content in files.items()]


# Reference ---------------------------------------------------------------------------------------


def reference_pages() -> dict[str, str]:
    """A page for every room and every family of algorithms, and a list of them."""
    pages = {}
    index = "# Reference\n\nEvery public name, by its room.\n\n"
    for title, intro, names in rooms():
        file = re.sub(r"\W+", "-", title) + ".md"
        objects = "".join(f"::: {name}\n\n" for name in names)
        pages[f"reference/{file}"] = f"# {title}\n\n{intro}\n\n{objects}"
        shown = ", ".join(f"`{name.rpartition('.')[2]}`" for name in names)
        index += f"* [{title}]({file}): {shown}\n"
    return {"reference/index.md": index, **pages}


def rooms() -> Iterator[tuple[str, str, list[str]]]:
    """The title of every page, its first paragraph, and what stands on it."""
    for info in iter_modules(dpbandits.__path__):
        if info.name in INNER or info.name.startswith("_"):
            continue
        module = import_module(f"dpbandits.{info.name}")
        names = [f"{module.__name__}.{name}" for name in public_names(module)]
        if info.name == "algorithms":
            for family in sorted({family_of(name) for name in names}):
                yield f"Policies: {family}", "", [n for n in names if family_of(n) == family]
        elif names:
            yield info.name.capitalize(), inspect.getdoc(module) or "", names


def public_names(module: ModuleType) -> list[str]:
    """What a room offers: its ``__all__``, or what is defined in it."""
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
    return list(getattr(module, "__all__", own))


def family_of(name: str) -> str:
    """Which page an algorithm is on."""
    defined = getattr(dpbandits.algorithms, name.rpartition(".")[2]).__module__
    return FAMILIES.get(defined.split(".")[2], "finite arms")
