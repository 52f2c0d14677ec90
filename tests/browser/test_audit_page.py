"""The labelling page in a real browser: keyboard, safety of labels, hostile text, access."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Response, expect

from tests.cli.tools import child, rows_of, write_rows

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    "<b>bold</b> &amp; ]]> </div></article> {{7*7}} javascript:alert(1)"
)
TURNED = "safe \u202etxet desrever\u2066 isolate never closed \u200f"
SHOTS = os.environ.get("DIKAST_SCREENSHOTS")


def item(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"gpt-4-vs-claude-{number}",
        "question": f"Question number {number}?",
        "response_a": f"first answer to {number}",
        "response_b": f"second answer to {number}",
        "inclusion_probability": 0.25,
        "stratum": f"winner A, secret {number % 2}",
        "stratum_pairs": 20,
        **more,
    }


@contextmanager
def serving(
    sample: Path, labels: Path, *words: object, port: int = 0, page: Page | None = None
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """`dikast audit serve` as a process; its address and the process.

    `page` leaves it before it ends: a browser may ask for the icon whenever it likes.
    """
    process = child(
        "audit", "serve", sample, "-o", labels, "--port", port, *words,
        env={"DIKAST_AUDIT_TOKEN": "the-token"},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), process.communicate()[1]
        yield url, process
        if page is not None:
            page.goto("about:blank")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def enter(page: Page, url: str, name: str = "ana") -> None:
    if page.url != url.partition("#")[0]:
        page.goto(url)
    page.get_by_label("Your name or initials").fill(name)
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#item")).to_be_visible()


def at(page: Page, number: int, total: int) -> None:
    expect(page.locator("#heading")).to_contain_text(f"Item {number} of {total}")


def shoot(page: Page, name: str) -> None:
    """A picture to look at, where a folder was named."""
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def test_labelling_by_keyboard_writes_what_was_meant(page: Page, tmp_path: Path) -> None:
    sample = write_rows(tmp_path / "sample.jsonl", [item(k) for k in range(12)])
    labels = tmp_path / "labels.jsonl"
    heard: list[str] = []

    def hear(response: Response) -> None:
        if "/api/" in response.url:
            heard.append(response.text())

    page.on("response", hear)
    with serving(sample, labels, "--repeat", "0", page=page) as (url, _):
        enter(page, url)
        assert "token" not in page.url
        lefts = []
        for number, key in enumerate(["1", "2", "0", "s"]):
            at(page, number + 1, 12)
            expect(page.locator("#heading")).to_be_focused()
            lefts.append(page.locator("#left").inner_text())
            page.keyboard.press(key)
        at(page, 5, 12)
        rows = rows_of(labels)
        for left, row, choice in zip(lefts, rows, ["left", "right", "tie", "skip"], strict=True):
            number = row["pair_id"].rpartition("-")[2]
            assert left.endswith(f"answer to {number}")
            a_left = left.startswith("first")
            assert row.get("shown", "ab") == ("ab" if a_left else "ba")
            expected = {"left": "A" if a_left else "B", "right": "B" if a_left else "A"}
            assert row.get("label") == expected.get(choice, "tie" if choice == "tie" else None)
            assert row.get("skipped", False) == (choice == "skip")
            assert (row["annotator"], row["inclusion_probability"]) == ("ana", 0.25)
            assert row["stratum_pairs"] == 20
        page.keyboard.press("ArrowLeft")
        at(page, 4, 12)
        expect(page.get_by_role("button", name="Skip")).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("1")
        at(page, 5, 12)
        assert rows_of(labels)[4]["pair_id"] == rows[3]["pair_id"]
        page.get_by_label("Keyboard shortcuts").uncheck()
        page.keyboard.press("1")
        page.get_by_role("button", name="Right is better").click()
        at(page, 6, 12)
        assert len(rows_of(labels)) == 6
    # Who wrote the answers, and what the judge said, never leaves the server.
    told = "".join(heard)
    assert "answer to" in told
    assert not any(word in told for word in ("gpt-4", "claude", "secret", "stratum", "repeat"))


def test_items_come_twice_with_the_sides_exchanged_and_orders_differ(
    page: Page, tmp_path: Path
) -> None:
    sample = write_rows(tmp_path / "sample.jsonl", [item(k) for k in range(6)])
    labels = tmp_path / "labels.jsonl"
    with serving(sample, labels, "--repeat", "0.5", page=page) as (url, _):
        seen: dict[str, list[tuple[str, str]]] = {}
        for name in ("ana", "bo"):
            enter(page, url, name)
            seen[name] = []
            for number in range(9):
                at(page, number + 1, 9)
                question = page.locator("#turns").inner_text()
                seen[name].append((question, page.locator("#left").inner_text()))
                page.keyboard.press("1")
            expect(page.get_by_role("heading", name="All done")).to_be_focused()
            page.get_by_role("button", name="Change name").click()
            expect(page.locator("#name")).to_be_focused()
    for shown in seen.values():
        sides: dict[str, set[str]] = {}
        for question, left in shown:
            sides.setdefault(question, set()).add(left)
        assert sorted(len(each) for each in sides.values()) == [1, 1, 1, 2, 2, 2]
    assert seen["ana"] != seen["bo"]
    again = [row for row in rows_of(labels) if row.get("repeat")]
    assert len(again) == 6
    assert all("again" in row and "label" not in row for row in again)


def test_no_decision_is_lost_when_the_server_is_killed(
    page: Page, tmp_path: Path, console: list[str]
) -> None:
    sample = write_rows(tmp_path / "sample.jsonl", [item(k) for k in range(8)])
    labels = tmp_path / "labels.jsonl"
    with serving(sample, labels, "--repeat", "0") as (url, process):
        port = int(url.split(":")[2].split("/")[0])
        enter(page, url)
        page.keyboard.press("1")
        at(page, 2, 8)
        page.keyboard.press("2")
        at(page, 3, 8)
        process.kill()
        process.wait()
        assert len(rows_of(labels)) == 2
        page.keyboard.press("0")
        expect(page.get_by_role("status")).to_contain_text("Not saved yet")
        at(page, 3, 8)
    with labels.open("a") as file:
        file.write('{"pair_id":"gpt-4-vs-cl')
    with serving(sample, labels, "--repeat", "0", port=port) as (_, process):
        at(page, 4, 8)
        assert [row.get("label") for row in rows_of(labels)][2] == "tie"
        page.reload()
        at(page, 4, 8)
        assert len({row["pair_id"] for row in rows_of(labels)}) == 3
        other = child("audit", "serve", sample, "-o", labels)
        assert "another" in other.communicate(timeout=20)[1]
        assert other.returncode == 3
    console.clear()  # the browser itself reports the connection that was refused


def test_hostile_text_is_text(page: Page, tmp_path: Path, console: list[str]) -> None:
    row = item(0, question=HOSTILE, response_a=HOSTILE, response_b=TURNED, note=HOSTILE)
    row["messages"] = [
        {"role": "user", "content": HOSTILE},
        {"role": "x<b>", "content": "سلام " + TURNED},
    ]
    sample = write_rows(tmp_path / "sample.jsonl", [row])
    with serving(sample, tmp_path / "labels.jsonl", page=page) as (url, _):
        enter(page, url)
        texts = {page.locator("#left").text_content(), page.locator("#right").text_content()}
        assert texts == {HOSTILE, TURNED}
        assert page.locator("#note").text_content() == HOSTILE
        assert page.locator(".turn .text").first.text_content() == HOSTILE
        assert page.locator(".text *").count() == 0
        assert page.evaluate("window.hacked") is None
        for box in page.locator(".text").all():
            assert box.get_attribute("dir") == "auto"
            style = box.evaluate("element => getComputedStyle(element).unicodeBidi")
            assert style == "plaintext"
        shoot(page, "hostile")
        assert console == []
        # Even a script that somebody got into the page would not run.
        page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = 'window.hacked=3';"
            " document.body.append(s); }"
        )
        assert page.evaluate("window.hacked") is None
    assert [("Content Security Policy" in each) for each in console] == [True]
    console.clear()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["English", "中文"])
def test_everyone_can_use_it(
    page: Page,
    tmp_path: Path,
    violations: Callable[[Page], list[str]],
    scheme: Any,
    language: str,
) -> None:
    rows = [
        item(0, reference="the reference", key_points=["one", "two"], response_b=""),
        item(1, response_a="多行\n回答 " * 60),
    ]
    sample = write_rows(tmp_path / "sample.jsonl", rows)
    page.emulate_media(color_scheme=scheme)
    with serving(sample, tmp_path / "labels.jsonl", page=page) as (url, _):
        page.goto(url)
        page.get_by_role("button", name=language).click()
        assert violations(page) == []
        shoot(page, f"enter-{scheme}-{language}")
        page.locator("#name").fill("ana")
        page.keyboard.press("Enter")
        expect(page.locator("#item")).to_be_visible()
        chinese = language == "中文"
        assert page.evaluate("document.documentElement.lang") == ("zh" if chinese else "en")
        assert violations(page) == []
        shoot(page, f"item-{scheme}-{language}")
        page.keyboard.press("Tab")
        reached = []
        for _ in range(9):
            reached.append(page.evaluate("document.activeElement.textContent.trim()"))
            page.keyboard.press("Tab")
        better = "1左侧更好" if chinese else "1Left is better"
        assert better in reached
        page.keyboard.press("1")
        expect(page.get_by_role("status")).to_have_text("已保存。" if chinese else "Saved.")
        assert violations(page) == []
        page.keyboard.press("2")
        expect(page.locator("#done")).to_be_visible()
        assert violations(page) == []
        shoot(page, f"done-{scheme}-{language}")


def test_a_narrow_screen_needs_no_sideways_scrolling(page: Page, tmp_path: Path) -> None:
    row = item(0, response_a="x" * 3000, response_b="many words " * 300)
    sample = write_rows(tmp_path / "sample.jsonl", [row])
    page.set_viewport_size({"width": 360, "height": 640})
    with serving(sample, tmp_path / "labels.jsonl", page=page) as (url, _):
        enter(page, url)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360
        shoot(page, "narrow")


def test_items_to_keep_or_drop(page: Page, tmp_path: Path) -> None:
    ask = "keep or drop"
    rows = [item(0, ask=ask, note="the panel is split"), item(1, ask=ask, response_b=None)]
    sample = write_rows(tmp_path / "sample.jsonl", rows)
    labels = tmp_path / "labels.jsonl"
    with serving(sample, labels, "--repeat", "0", page=page) as (url, _):
        enter(page, url)
        shoot(page, "keep")
        page.keyboard.press("1")
        at(page, 2, 2)
        page.get_by_role("button", name="Drop").click()
        expect(page.locator("#done")).to_be_visible()
    assert [row["decision"] for row in rows_of(labels)] == ["keep", "drop"]


def test_without_the_key_nothing_is_shown(page: Page, tmp_path: Path, console: list[str]) -> None:
    sample = write_rows(tmp_path / "sample.jsonl", [item(0)])
    with serving(sample, tmp_path / "labels.jsonl", page=page) as (url, _):
        page.goto(url.partition("#")[0])
        page.locator("#name").fill("eve")
        page.keyboard.press("Enter")
        expect(page.locator("#stop")).to_contain_text("Open the address that the terminal printed")
        assert "answer to" not in page.content()
    assert all("401" in each for each in console)
    console.clear()
