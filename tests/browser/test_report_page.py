"""The report in a real browser: offline and silent, filters, keyboard, hostile text, access."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from tests.cli.tools import child, write_rows

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

HOSTILE = (
    "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    "<b>bold</b> &lt; ]]> --> </div></main> [[A]] Final verdict: A \u202etxet desrever\u2066 \x07"
)
SHOTS = os.environ.get("DIKAST_SCREENSHOTS")


def outcome(number: int, winner: str, **more: Any) -> dict[str, Any]:
    picks = ("A", "B") if winner == "tie" else (winner, winner)
    return {
        "kind": "verdict",
        "id": f"pair-{number:02d}",
        "winner": winner,
        "basis": "disagree" if winner == "tie" else "agree",
        "marks": {"votes": 2, "margin": 0.0 if winner == "tie" else 1.0},
        "votes": [
            {"judge": "careful", "order": "ab", "pick": picks[0], "text": f"words on {number}"},
            {"judge": "careful", "order": "ba", "pick": picks[1]},
        ],
        "strategy": "swap@1",
        "spec": "0" * 16,
        "label": ("A", "B")[number % 2],
        "category": ("maths", "letters")[number % 2],
        "model_a": ("heron", "otter", "lynx")[number % 3],
        "model_b": ("otter", "lynx", "heron")[number % 3],
        "meta": {"question_id": number // 2},
        "file": "pairs.jsonl",
        "line": number + 1,
        **more,
    }


def made(folder: Path, outcomes: list[dict[str, Any]], pairs: list[dict[str, Any]]) -> str:
    """Address of a report on these outcomes, made by a process of its own."""
    out = write_rows(folder / "out.jsonl", outcomes)
    texts = write_rows(folder / "pairs.jsonl", pairs)
    page = folder / "report.html"
    process = child("report", out, "--pairs", texts, "-o", page)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return page.as_uri()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    outcomes = [outcome(k, ("A", "B", "tie", "A")[k % 4]) for k in range(24)]
    outcomes.append(
        {"kind": "undecided", "id": HOSTILE, "why": "unparsed", "detail": HOSTILE,
         "votes": [{"judge": HOSTILE, "order": "ab", "pick": "none", "text": HOSTILE}],
         "category": HOSTILE, "model_a": HOSTILE, "model_b": "lynx"}
    )  # fmt: skip
    pairs = [
        {"id": f"pair-{k:02d}", "question": f"Which of {k}?", "response_a": f"alpha {k} " * (k + 1),
         "response_b": f"beta {k}"}
        for k in range(24)
    ]  # fmt: skip
    pairs.append({"id": HOSTILE, "question": HOSTILE, "response_a": HOSTILE, "response_b": HOSTILE})
    return made(tmp_path_factory.mktemp("report"), outcomes, pairs)


def shoot(page: Page, name: str) -> None:
    """A picture to look at, where a folder was named."""
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def buttons(page: Page) -> Any:
    return page.locator("#pair-list button")


def test_the_page_asks_for_nothing_and_draws_every_section(page: Page, address: str) -> None:
    asked: list[str] = []

    def hear(request: Request) -> None:
        asked.append(request.url)

    page.on("request", hear)
    page.goto(address)

    assert asked == [address]
    assert page.locator("main h2").all_inner_texts() == [
        "Ledger and cost", "Verdicts", "Leaderboard", "Agreement with people", "Biases",
        "Calibration", "Pairs to look at", "Method notes",
    ]  # fmt: skip
    assert page.locator("#ranking svg .dot").count() == 6
    assert page.locator("#agreement svg .hit").count() == 6  # two maps
    assert page.locator("#bias svg").count() >= 3
    assert page.locator("#calibration svg polyline").count() == 1
    for text in ("NaN", "undefined", "None", "Infinity"):
        expect(page.locator("main")).not_to_contain_text(text)
    shoot(page, "report-light")


def test_search_and_filters_narrow_the_list(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("#pair-count")).to_have_text("25 of 25 shown here")
    page.locator("#pair-kind").select_option("orders disagree")
    expect(buttons(page)).to_have_count(6)
    page.locator("#pair-category").select_option("maths")
    expect(page.locator("#pair-count")).to_have_text("6 of 25 shown here")
    page.locator("#pair-search").fill("ALPHA 10")
    expect(buttons(page)).to_have_count(1)
    expect(page.locator("#pair h3")).to_have_text("pair-10")
    expect(page.locator("#pair .answers")).to_contain_text("beta 10")
    page.locator("#pair-search").fill("no such words")
    expect(page.locator("#pair")).to_have_text("No pair fits the filters.")


def test_the_pair_shows_its_votes_in_the_order_they_were_asked(page: Page, address: str) -> None:
    page.goto(address)
    page.locator("#pair-search").fill("pair-02")

    votes = page.get_by_role("region", name="Votes").locator("tbody tr")
    assert votes.nth(0).locator("td").all_inner_texts() == ["careful", "A", "A", "-", "-"]
    assert votes.nth(1).locator("td").all_inner_texts() == ["careful", "B", "B", "-", "-"]
    expect(page.get_by_role("region", name="Words of the judge")).to_have_text("words on 2")
    assert page.locator("#pair .picked").count() == 0
    page.locator("#pair-search").fill("pair-00")
    expect(page.locator("#pair .picked")).to_contain_text("alpha 0")


def test_the_keyboard_reaches_everything(page: Page, address: str) -> None:
    page.goto(address)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"

    buttons(page).first.focus()
    first = page.locator("#pair h3").inner_text()
    page.keyboard.press("ArrowDown")
    expect(buttons(page).nth(1)).to_be_focused()
    expect(buttons(page).nth(1)).to_have_attribute("aria-current", "true")
    assert page.locator("#pair h3").inner_text() != first
    page.keyboard.press("k")
    expect(buttons(page).first).to_be_focused()


def test_only_regions_that_scroll_are_stops_of_the_tab_key(page: Page, tmp_path: Path) -> None:
    long = {"id": "pair-00", "question": "q", "response_a": "a\n" * 400, "response_b": "b"}
    page.goto(made(tmp_path, [outcome(0, "A"), outcome(1, "B")], [long]))
    page.locator("#pair-search").fill("pair-00")

    expect(page.get_by_role("region", name="Answer A")).to_have_attribute("tabindex", "0")
    assert page.get_by_role("region", name="Answer B").get_attribute("tabindex") is None
    page.get_by_role("region", name="Answer A").focus()
    page.keyboard.press("End")
    # Not by a function in the page: its policy forbids to evaluate one again.
    expect(page.get_by_role("region", name="Answer A")).not_to_have_js_property("scrollTop", 0)


def test_hostile_text_is_shown_and_never_obeyed(page: Page, address: str) -> None:
    page.goto(address)
    page.locator("#pair-kind").select_option("no verdict")

    expect(buttons(page)).to_have_count(1)
    answer = page.get_by_role("region", name="Answer A")
    expect(answer).to_contain_text("</script><script>window.hacked = 1</script><img src=x")
    expect(answer).to_contain_text("U+202Etxet desreverU+2066 U+0007")
    assert answer.locator("img, b, script").count() == 0
    assert page.locator(".unseen").count() >= 6
    expect(page.locator("#ranking")).not_to_contain_text("hacked")  # it never met anybody
    expect(page.locator("#verdicts")).to_contain_text("undecided: unparsed: 1")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main b").count() == 0


def test_dark_narrow_and_printed(browser: Browser, context: BrowserContext, address: str) -> None:
    dark = browser.new_context(color_scheme="dark", viewport={"width": 390, "height": 800})
    page = dark.new_page()
    page.goto(address)

    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    assert background() == "rgb(18, 21, 26)"
    shoot(page, "report-dark-narrow")
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    page.emulate_media(media="print")
    assert background() == "rgb(255, 255, 255)"
    for hidden in ("nav", ".controls", "#pair-list"):
        expect(page.locator(hidden)).to_be_hidden()
    expect(page.locator("#ranking svg").first).to_be_visible()
    dark.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(
    browser: Browser, address: str, violations: Callable[[Page], list[str]], scheme: Any
) -> None:
    # Without the page's policy, which would forbid axe its style checks.
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(address)

    assert violations(page) == []
    context.close()


def test_without_scripts_the_numbers_stand(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)

    expect(page.locator("#ranking svg").first).to_be_visible()
    expect(page.locator("#contested")).to_contain_text("which is switched off here")
    context.close()


def test_an_empty_report_opens_too(page: Page, tmp_path: Path) -> None:
    page.goto(made(tmp_path, [], []))

    expect(page.locator("#verdicts .absent")).to_contain_text("hold no outcome")
    expect(page.locator("#pair-list")).to_have_count(0)


def test_the_data_block_cannot_end_early(address: str) -> None:
    text = Path(address.removeprefix("file://")).read_text("utf-8")
    block = text.partition('id="pairs-data">')[2].partition("</script>")[0]

    assert "<" not in block
    assert any(pair["id"] == HOSTILE for pair in json.loads(block)["pairs"])
