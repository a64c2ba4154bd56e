"""An operator in a browser: forms work with the headers that a browser really sends."""

import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from operators import SHOP, declare, play, service_in

from dpbandits.service.app import make_app

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = Path("/usr/bin/chromium")  # Debian's
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no chromium")


@contextmanager
def serving(service):
    """A server at a free port; its address."""
    config = uvicorn.Config(make_app(service), port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        host, port = server.servers[0].sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as drivers:
        # Chromium has no sandbox for root, which containers run tests as.
        path, more = str(CHROMIUM), ["--no-sandbox"]
        launched = drivers.chromium.launch(executable_path=path, args=more)
        yield launched
        launched.close()


@pytest.fixture
def shop(tmp_path, monkeypatch, browser):
    """The page of an experiment, at the width of a phone."""
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    service = service_in(tmp_path)
    secret = service.keys.add()[1]
    with serving(service) as address, httpx.Client(base_url=address) as client:
        declare(client, secret, SHOP)
        play(client, secret)
        signed_in = {"username": "anyone", "password": secret}
        with browser.new_context(
            http_credentials=signed_in, viewport={"width": 390, "height": 800}
        ) as context:
            page = context.new_page()
            page.set_default_timeout(20_000)
            page.blocked = []
            page.on("console", lambda said: page.blocked.append(said.text))
            page.goto(f"{address}/console")
            page.click("text=shop")
            page.wait_for_load_state()
            yield page


def send(page, action, button, **fields):
    form = page.locator(f"form[action$='/{action}']")
    for name, value in fields.items():
        form.locator(f"[name={name}]").fill(value)
    form.get_by_role("button", name=button).click()


def test_pause_resume_and_retire(shop):
    send(shop, "pause", "Pause", reason="holidays")
    assert shop.inner_text("[role=status]") == "The experiment is paused."
    assert shop.inner_text(".badge") == "paused"
    send(shop, "resume", "Resume", reason="back again")
    assert shop.inner_text(".badge") == "running"
    shop.select_option("form[action$='/retire'] select", "green")
    send(shop, "retire", "Retire an arm", reason="sold out")
    assert shop.inner_text("[role=status]") == "The arm is retired."
    shop.click("text=Whole trail")
    told = [row.split("\t")[1:4] for row in shop.locator("tbody tr").all_inner_texts()]
    assert told == [
        ["retired an arm", "green", "sold out"],
        ["resumed", "", "back again"],
        ["paused", "", "holidays"],
        ["created", "", ""],
    ]
    assert shop.blocked == []  # by the policy of contents


def test_a_form_without_a_reason_is_not_sent(shop):
    before = shop.url
    send(shop, "pause", "Pause")
    assert shop.url == before
    assert shop.inner_text(".badge") == "running"


def test_another_site_cannot_send_a_form(shop):
    """The browser would send the key with it: the request is refused for where it comes from."""
    token = shop.locator("form[action$='/pause'] [name=token]").get_attribute("value")
    here = shop.url
    shop.route(
        "http://evil.example/**",
        lambda route: route.fulfill(
            content_type="text/html",
            body=f"<form method=post action='{here}/pause'><input name=token value={token}>"
            "<input name=reason value=x><button>Win</button></form>",
        ),
    )
    shop.goto("http://evil.example/")
    shop.click("text=Win")
    shop.wait_for_url(f"{here}/pause")
    assert "not sent from a page of this service" in shop.inner_text("main")
    shop.goto(here)
    assert shop.inner_text(".badge") == "running"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("path", ["", "/ledger", "/trail", "/card"])
def test_only_boxes_scroll_sideways(shop, width, path):
    shop.set_viewport_size({"width": width, "height": 800})
    shop.goto(shop.url + path)
    assert shop.evaluate("document.documentElement.scrollWidth") <= width


def test_the_keyboard_shows_where_it_is(shop):
    shop.keyboard.press("Tab")
    style = shop.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"
