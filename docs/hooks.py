"""Pages of the site that are made when it is built, so that none of them is kept twice.

They are files of the repository's root, notebooks with their outputs, and the reference.  MkDocs
calls the functions whose names begin with on_.
"""

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from pictures import bias
from rooms import INHERITS, presets, rooms, table_of_names, table_of_others, table_of_presets
from rooms import Page as RoomPage

from dpbandits.cli.modest_audits import modest_audits
from dpbandits.cli.promises import write_cards
from dpbandits.plotting.dark import with_dark_colours

ROOT = Path(__file__).parents[1]
AUDITS = ROOT / ".audits"  # what attacks found, kept until the code changes; git ignores it
LOG = logging.getLogger("mkdocs.hooks")  # whose warnings are errors in a strict build

# Pages that are made, by words that lead to them on pages of docs/.
MADE = {"the card of every policy": "cards/index.md", "the reference": "reference/index.md"}

# Files of the root, and their pages.  MkDocs takes a README for the index of its folder.
OUTSIDE = {
    "README": "overview",
    "CONTRIBUTING": "contributing",
    "SECURITY": "security",
    "CHANGELOG": "changelog",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    made: dict[str, str | bytes] = {f"{page}.md": outside(name) for name, page in OUTSIDE.items()}
    reference = reference_pages()
    made |= {**notebook_pages(config), **card_pages(), **reference}
    made["images/bias.svg"] = bias()
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    for section in config.nav or []:
        if "Reference" in section:
            section["Reference"] = reference_nav()
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files of the root, to notebooks, and words of MADE, to their pages."""
    if page.file.src_uri in {"index.md", "cards.md", "policies.md"}:
        for words, target in MADE.items():
            markdown = markdown.replace(words, f"[{words}]({target})")
    if page.file.src_uri == "intervals.md":
        shown = "![Means of equal arms: the leader reads too high, the others too low]"
        markdown = markdown.replace("<!-- picture: bias -->", f"{shown}(images/bias.svg)")
    if page.file.src_uri == "gallery/index.md":
        markdown = with_thumbnails(markdown, files)
    if page.file.src_uri == "policies.md":
        markdown = with_names(markdown)
    markdown = re.sub(
        rf"(\]\((?:\.\./)*?)(?:\.\./)?({'|'.join(OUTSIDE)})(?=\.md)",
        lambda link: link[1] + OUTSIDE[link[2]],
        markdown,
    )
    return re.sub(r"\.ipynb\)(?!\{)", ".md)", markdown)  # but for the button of the notebook


def on_post_build(config: MkDocsConfig) -> None:
    """Warn of what a page would fetch from elsewhere: the site works without a network."""
    fetched = r"<(?:script|img|iframe|source)\b[^>]*\bsrc=|<link\b[^>]*\bhref="
    for page in Path(config.site_dir).rglob("*.html"):
        for tag in re.findall(rf"(?:{fetched})[\"']?(?:https?:)?//[^>]*>", page.read_text()):
            LOG.warning("%s fetches %s", page, tag)


def outside(name: str) -> str:
    """The text of a file of the root, with links as they are in docs/."""
    return (ROOT / f"{name}.md").read_text().replace("](docs/", "](")


# A cell before the first of a notebook.
FIGURES = """
%matplotlib inline
%config InlineBackend.figure_formats = ["svg"]
from dpbandits.plotting.drawing import Drawing, svg
Drawing._repr_png_ = None
formatters = get_ipython().display_formatter.formatters
formatters["image/svg+xml"].for_type(Drawing, lambda figure: svg(figure).decode())
"""

# Notebooks ---------------------------------------------------------------------------------------


def notebook_pages(config: MkDocsConfig) -> dict[str, str | bytes]:
    """Every notebook, run from its first cell to its last, and its figures."""
    paths = sorted(Path(config.docs_dir).rglob("*.ipynb"))
    with ThreadPoolExecutor(2) as pool:  # each waits for a process of its own
        return dict(page for pages in pool.map(run_notebook, paths) for page in pages)


def run_notebook(path: Path) -> list[tuple[str, str | bytes]]:
    """One notebook as a page, and the files of its outputs: figures as SVG with dark colours."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(FIGURES))
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
    del notebook.cells[0]
    body, resources = MarkdownExporter().from_notebook_node(
        notebook, resources={"unique_key": path.stem}
    )
    title, text = body.replace("![svg]", "![Figure]").split("\n", 1)
    link = f"[This page as a notebook]({path.name}){{.md-button}}"
    here = path.relative_to(ROOT / "docs").parent
    outputs = {
        name: with_dark_colours(drawn) if is_light(name, drawn) else drawn
        for name, drawn in resources["outputs"].items()
    }
    files = {f"{path.stem}.md": f"{title}\n{text}\n\n{link}\n", **outputs}
    return [(str(here / name), content) for name, content in files.items()]


def is_light(name: str, drawn: bytes) -> bool:
    """Whether a file is a figure with colours for white paper alone."""
    return name.endswith(".svg") and b"prefers-color-scheme" not in drawn


def with_thumbnails(markdown: str, files: Files) -> str:
    """The list of notebooks as cards, each with the first figure of its notebook."""
    figures = {}
    for file in files:
        found = re.fullmatch(r"gallery/([\w-]+)_\d+_\d+\.(svg|png)", file.src_uri)
        if found:
            figures.setdefault(found[1], Path(file.src_uri).name)
    cards = re.sub(
        r"^\* (\[.*?\]\(([\w-]+)\.ipynb\).*)$",
        lambda card: (
            f"* ![]({figures[card[2]]})\n\n    {card[1]}\n"
            if card[2] in figures
            else f"{card[0]}\n"
        ),
        markdown,
        flags=re.MULTILINE,
    )
    head, first, rest = cards.partition("\n* ")
    return f'{head}\n<div class="grid cards" markdown>\n{first}{rest}\n</div>\n'


# Privacy cards -----------------------------------------------------------------------------------


def card_pages() -> dict[str, str]:
    """The card of every policy, and a list of them."""
    with TemporaryDirectory() as folder:
        write_cards(Path(folder), modest_audits(AUDITS))
        return {f"cards/{page.name}": page.read_text() for page in Path(folder).glob("*.md")}


# Reference ---------------------------------------------------------------------------------------


def reference_pages() -> dict[str, str]:
    """A page for every group of names, and a list of them."""
    made = {"reference/names.md": f"# Names of dpbandits\n\n{table_of_names()}"}
    index = "# Reference\n\nEvery public name. Names at the top level: [a list](names.md).\n"
    for section, pages in groupby(rooms(), key=lambda page: page.section):
        index += f"\n## {section}\n\n"
        for page in pages:
            file = file_of(page)
            made[f"reference/{file}"] = f"# {page.title}\n\n{page.intro}\n\n" + "".join(
                f"{place_of(name)}\n{beside(name)}" for name in page.names
            )
            shown = ", ".join(f"[`{name.rpartition('.')[2]}`][{name}]" for name in page.names)
            index += f"* [{page.title}]({file}): {shown}\n"
    return {"reference/index.md": index, **made}


def place_of(name: str) -> str:
    """Where the docstring of a name stands, with inherited methods for classes in ``INHERITS``."""
    options = "    options:\n      inherited_members: true\n" if name in INHERITS else ""
    return f"::: {name}\n{options}"


def file_of(page: RoomPage) -> str:
    """The file of a page of the reference."""
    return re.sub(r"\W+", "-", page.title) + ".md"


def reference_nav() -> list[Any]:
    """The menu of the reference: a list for each section."""
    menu = [
        {section: [f"reference/{file_of(page)}" for page in pages]}
        for section, pages in groupby(rooms(), key=lambda page: page.section)
    ]
    first = menu[0]["The front door"]
    return ["reference/index.md", {"The front door": [*first, "reference/names.md"]}, *menu[1:]]


def beside(name: str) -> str:
    """What stands below a class that takes parts: its presets, and where options are explained."""
    own = name.rpartition(".")[2]
    if not presets(own):
        return ""
    options = "Options of every policy: [`Options`][dpbandits.policies.Options]."
    return f"{options}\n\n{table_of_presets(own, '../cards')}\n"


# Policies ----------------------------------------------------------------------------------------


def with_names(markdown: str) -> str:
    """The page of policies, with tables of their names, and parts that lead to the reference."""
    parts = [name for page in rooms() if page.section == "Parts" for name in page.names]
    homes = {name.rpartition(".")[2]: name for name in parts}
    markdown = re.sub(
        rf"`({'|'.join(homes)})\([^`=]*\)`",
        lambda found: f"[{found[0]}][{homes[found[1]]}]",
        markdown,
    )
    markdown = re.sub(
        r"<!-- names of (.*?) -->",
        lambda found: "\n".join(table_of_presets(one, "cards") for one in found[1].split()),
        markdown,
    )
    return markdown.replace("<!-- other names -->", table_of_others("cards"))
