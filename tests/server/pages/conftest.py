"""A server in a thread, and a real browser to look at it."""

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Playwright,
    Request,
    sync_playwright,
)
from tests.waiting import HANGS

from defocus.server.app import create_app
from defocus.server.operations import Settings
from defocus.server.requests import Desk

ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
PICTURES = os.environ.get("PICTURES")
"""The folder in which pictures of all pages are kept, where somebody wants to see them."""
PASSWORD = "four words are enough"  # noqa: S105  # of people who are made up
EVIL = "<img src=x onerror=\"document.title='hit'\">'\"{{7*7}}"
"""Text that acts wherever it is not escaped."""


@dataclass(frozen=True)
class Site:
    """A running server."""

    address: str
    desk: Desk
    first_link: str


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    door = socket.create_server(("127.0.0.1", 0))  # kept, so that nobody else takes the port
    address = f"http://127.0.0.1:{door.getsockname()[1]}"
    app = create_app(Settings(home=tmp_path / "server", address=address))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, args=([door],), daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive(), "the server did not start"
    secret = app.state.desk.people.first_link()
    yield Site(address, app.state.desk, f"{address}/invitation/{secret}")
    server.should_exit = True
    thread.join()
    door.close()


@pytest.fixture(scope="session")
def playing() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(playing: Playwright) -> Iterator[Browser]:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.fail("There is no Chromium. To fix: apt-get install chromium, or name one: CHROMIUM=/path/to/chromium.")
    made = playing.chromium.launch(executable_path=found, args=ARGUMENTS)
    yield made
    made.close()


@dataclass
class Visitor:
    """Somebody with a browser. Each page that is looked at is checked, and kept as pictures if they are wanted."""

    page: Page
    site: Site
    problems: list[str]

    def go(self, path: str) -> None:
        """Open an address of the site."""
        self.page.goto(path if path.startswith("http") else self.site.address + path)

    def press(self, selector: str) -> None:
        """Click what leads to another page, and wait for that page."""
        with self.page.expect_navigation():
            self.page.click(selector)

    def look(self, name: str, *, dark: bool = True) -> None:
        """Check the page for those who do not see it or have a small screen, and take pictures where they are wanted.

        ``dark`` also checks its contrasts in the dark, which no text and no language changes.
        """
        page = self.page
        found = Axe().run(page)
        assert found.violations_count == 0, f"{name}: {found.generate_report()}"
        schemes = [(width, scheme) for scheme in ("light", "dark") for width in (1280, 400)]
        for width, scheme in schemes if PICTURES else (schemes[0], schemes[3]):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size({"width": width, "height": 900})
            if PICTURES:
                page.screenshot(path=Path(PICTURES, f"{name}-{width}-{scheme}.png"), full_page=True)
            wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wide <= 0, f"{name} is {wide} pixels wider than a screen of {width}"
        if dark:
            contrasts = Axe().run(page, options={"runOnly": ["color-contrast"]})
            assert contrasts.violations_count == 0, f"{name}, dark: {contrasts.generate_report()}"
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1280, "height": 900})
        assert page.title() != "hit"
        assert page.locator("img[src=x]").count() == 0

    def accept(self, link: str) -> None:
        """Use an invitation."""
        self.go(link)
        self.page.fill("#password", PASSWORD)
        self.page.fill("#again", PASSWORD)
        self.press("main button")

    def sign_in(self, name: str) -> None:
        """Sign in."""
        self.go("/sign-in")
        self.page.fill("#name", name)
        self.page.fill("#password", PASSWORD)
        self.press("main button")

    def sign_out(self) -> None:
        """Sign out."""
        self.press("header form button")


def _is_bad(said: ConsoleMessage) -> bool:
    """Whether a browser complains; that a form was refused is no complaint."""
    return said.type in {"error", "warning"} and "status of 422" not in said.text


@pytest.fixture
def visitor(browser: Browser, site: Site) -> Iterator[Callable[..., Visitor]]:
    """Makes visitors; nothing may be loaded from elsewhere, and no page may break the rules that it came with."""
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
    opened: list[tuple[BrowserContext, list[str]]] = []

    def visit(**how: Any) -> Visitor:
        context = browser.new_context(**{"locale": "en-GB", **how})
        context.set_default_timeout(1000 * HANGS)
        problems: list[str] = []
        page = context.new_page()

        def heard(said: ConsoleMessage) -> None:
            problems.extend([said.text] if _is_bad(said) else [])

        def opened_dialog(dialog: Dialog) -> None:
            problems.append(f"a dialog: {dialog.message}")
            dialog.dismiss()

        def sent(request: Request) -> None:
            problems.extend([] if request.url.startswith(site.address) else [request.url])

        page.on("console", heard)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", opened_dialog)
        page.on("request", sent)
        opened.append((context, problems))
        return Visitor(page, site, problems)

    yield visit
    for context, problems in opened:
        context.close()
        assert not problems
