"""Prose of the project, sentence by sentence: pages, docstrings, and messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]

_CODE = re.compile(r"^(```|~~~).*?^\1\s*$", re.DOTALL | re.MULTILINE)
_NOT_PROSE = re.compile(r"^\s*(\||<|#|!|\[\^?[\w-]+\]:|---|\$\$|>>>|\.\.\.)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*([*+-]|\d+\.)\s+")
_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`*\"(])")


def pages() -> list[Path]:
    """All pages that are written by hand, in Markdown."""
    return [*PAGES, *sorted((ROOT / "docs").rglob("*.md"))]


def sentences(text: str) -> Iterator[str]:
    """Sentences of Markdown or of a docstring, without code, tables and headings."""
    text = _CODE.sub("\n\n", text)
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        item = _ITEM.match(line)
        if not line.strip() or _NOT_PROSE.match(line) or item:
            yield from _split(" ".join(block))
            block = []
        if line.strip() and not _NOT_PROSE.match(line):
            block.append(line[item.end() :] if item else line.strip())


def _split(block: str) -> Iterator[str]:
    plain = re.sub(r"`[^`]*`", "x", _LINK.sub(r"\1", block))
    for sentence in _END.split(plain):
        if len(sentence.split()) > 2:
            yield sentence.strip()


def docstrings(path: Path, public: bool = True) -> Iterator[str]:
    """Docstrings of a module, and of what in it has no underscore."""
    tree = ast.parse(path.read_text())
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if named and public and node.name.startswith("_"):
            continue
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.get_docstring(node)
            if said:
                yield said
            stack.extend(node.body)


def messages(path: Path) -> Iterator[str]:
    """What a module's exceptions and warnings say, with ``x`` for what is filled in."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            for argument in node.args:
                said = _literal(argument)
                if len(said.split()) > 4:
                    yield said


def _literal(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_literal(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "x"
    if isinstance(node, ast.BinOp):
        return _literal(node.left) + _literal(node.right)
    return ""
