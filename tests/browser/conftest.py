"""Pages in a real browser: the system's Chromium, headless, driven by playwright.

Skipped where there is none, unless DIKAST_REQUIRE_BROWSER is set. `page` fails a test at its end
when the console showed an error. While a test here runs, playwright's loop is the thread's
running loop: commands are run as children, not by `cli`.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WAIT_MS = 10_000.0


def missing(what: str) -> None:
    """Skip, or fail where a browser is required."""
    if os.environ.get("DIKAST_REQUIRE_BROWSER"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(autouse=True)
def no_task_is_left() -> None:
    """Instead of the check for async tests: playwright's own tasks live as long as the browser."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a file."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        missing(f"none of {', '.join(NAMES)} is installed")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield launched
        launched.close()


@pytest.fixture
def console() -> list[str]:
    """Errors of the page: `page` puts them in; a test that expects some clears it."""
    return []


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A clean profile: English, light, no storage."""
    made = browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 860})
    made.set_default_timeout(WAIT_MS)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, console: list[str]) -> Iterator[Page]:
    """An empty page; the test fails when its console showed an error."""
    made = context.new_page()

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            console.append(message.text)

    made.on("console", hear)
    made.on("pageerror", lambda error: console.append(str(error)))
    yield made
    made.close()
    assert console == []


@pytest.fixture(scope="session")
def axe_source() -> str:
    """The text of axe-core, fetched once by scripts/axe."""
    done = subprocess.run(
        [str(ROOT / "scripts" / "axe")], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        missing(f"axe-core cannot be fetched: {done.stderr.strip()[-200:]}")
    return Path(done.stdout.strip()).read_text("utf-8")


@pytest.fixture
def violations(axe_source: str) -> Callable[[Page], list[str]]:
    """`violations(page)`: what axe-core finds wrong, as `rule: where`."""

    def check(page: Page) -> list[str]:
        page.evaluate(axe_source)
        result: dict[str, Any] = page.evaluate("() => axe.run(document)")
        return [
            f"{each['id']}: {node['target']}"
            for each in result["violations"]
            for node in each["nodes"]
        ]

    return check
