"""Engines of JavaScript that have WebCrypto: Node and Chromium, where a machine has them."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Engine = Callable[..., Any]  # of the body of an async function, and of what it calls ``given``
CHROMIUM = Path("/usr/bin/chromium")  # Debian's
PAGE = "https://page.test/"  # never asked for: WebCrypto is for pages of secure origins


def source(seed: int) -> tuple[bytes, Callable[[int], bytes]]:
    """Random bytes, and a function that gives the next of them."""
    stream = np.random.default_rng(seed).bytes(2**18)
    return stream, io.BytesIO(stream).read


@contextmanager
def in_node(script: str) -> Iterator[Engine]:
    """Each function runs in a process of its own, after the script."""
    if shutil.which("node") is None:
        pytest.skip("there is no node")

    def run(body: str, given: Any = None) -> Any:
        told = "JSON.parse(require('fs').readFileSync(0, 'utf8'))"
        main = f"(async (given) => {{ {body} }})({told})"
        text = f"{script}\n{main}.then((made) => console.log(JSON.stringify(made)));"
        options: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
        done = subprocess.run(["node", "-e", text], input=json.dumps(given), timeout=60, **options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    yield run


@contextmanager
def in_chromium(script: str) -> Iterator[Engine]:
    """Functions run in a page of one browser."""
    with chromium() as browser:
        page = opened(browser.new_context(), script)
        yield lambda body, given=None: page.evaluate(f"async (given) => {{ {body} }}", given)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without windows."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip("there is no chromium")
    with playwright.sync_playwright() as drivers:
        # Chromium has no sandbox for root, which containers run tests as.
        path, more = str(CHROMIUM), ["--no-sandbox"]
        launched = drivers.chromium.launch(executable_path=path, args=more)
        yield launched
        launched.close()


def opened(context: Any, script: str) -> Any:
    """A page with the script."""
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.route(PAGE, lambda route: route.fulfill(body="<title>A page</title>"))
    page.goto(PAGE)
    page.add_script_tag(content=script)
    return page


ENGINES = {"node": in_node, "chromium": in_chromium}
