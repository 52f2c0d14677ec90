"""How many recorded texts are read as the verdict that was recorded with them, file by file.

    .venv/bin/python -m bench.reading ../shared/data > docs/reading.md

Every text of every file of judge outputs goes through a template's reader. It is read as its
recorded verdict (or, where none was recorded, as none), or it is listed with the reason why not.
Writes the page; a test holds the page against the data.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.recorded import TEMPLATES, llmbar_reader, rows
from dikast.engine.model import Completion, flip_pick
from dikast.strategies import PromptTemplate, load_template, parse_template
from dikast.tables import Share, Table, render

READERS: Final = {
    "devbench": "devbench-choice",
    "mtbench_pb": "mtbench-marker",
    "mtbench_phi3": "mtbench-marker",
    "vicuna80": "two-scores",
}
INTRO: Final = """\
# Reading: recorded texts of real judges

The words of a judge become a verdict in one place, the reader of a template
([templates.md](templates.md)). To know that it reads what real judges write, every recorded text
at hand is read and held against the verdict that its study recorded. It is either read so, or
listed below with the reason. There is no third way: a text that cannot be read has no verdict, and
never a guessed one.

This page is written by `python -m bench.reading DATA`, and a test holds it against the data.

"""
OUTRO: Final = """
**How to read the first table.** `texts`: records with the judge's words; other records hold a
verdict only. `as recorded`: read as the recorded verdict, or as none where the study found none
either (`of them none`). `listed`: in the second table. `two verdicts`: texts that name two
different verdicts, such as "[[A]] is better than [[B]]"; the studies took the first, and the
readers used here do the same (`take = "first"`). With `take = "only"`, which a template of your
own should use, these are undecided. The LLMBar readers repeat LLMBar's own rules in the same way.
"""


class Reading(msgspec.Struct):
    """One file. `listed` holds pair, order and reason of each text that is not read as recorded."""

    file: str
    readers: tuple[str, ...]
    texts: int = 0
    as_recorded: int = 0
    none: int = 0
    two_verdicts: int | None = None
    without_text: int = 0
    listed: list[tuple[str, str, str]] = []


def reader_of(file: str, template: str) -> str | None:
    """The template in examples/templates that reads the file; None: its texts are no answers."""
    if file.startswith("llmbar"):
        return llmbar_reader(file, template)
    return next((name for start, name in READERS.items() if file.startswith(start)), None)


def strict(name: str) -> PromptTemplate:
    """The template with a reader that takes no verdict where two different ones stand."""
    text = (TEMPLATES / f"{name}.toml").read_text(encoding="utf-8")
    return parse_template(text.replace('take = "first"', 'take = "only"'))


def read_file(path: Path) -> Reading:
    """Read every text of one file of judge outputs."""
    file = path.name.removesuffix(".jsonl.gz")
    found = Reading(file=file, readers=())
    prompts: dict[str, tuple[PromptTemplate, PromptTemplate | None]] = {}
    for row in rows(path):
        if row["raw"] is None:
            found.without_text += 1
            continue
        found.texts += 1
        name = reader_of(file, row["template"])
        if name is None:
            reason = "several roles' words in one record, and no verdict recorded"
            found.listed.append((row["pair_id"], row["order"], reason))
            continue
        if name not in prompts:
            plain = load_template(str(TEMPLATES / f"{name}.toml"))
            prompts[name] = (plain, strict(name) if name in set(READERS.values()) else None)
        _read(row, found, *prompts[name])
    found.readers = tuple(sorted(prompts))
    return found


def _read(
    row: dict[str, Any], found: Reading, prompt: PromptTemplate, only: PromptTemplate | None
) -> None:
    said = Completion(text=row["raw"], finish_reason=row.get("finish") or "stop")
    read = prompt.reader.read(said)
    shown = None if read.pick == "none" else read.pick
    pick = shown if shown is None or row["order"] == "ab" else flip_pick(shown)
    if only is not None and prompt.reader.spec.take == "first":
        two = shown is not None and only.reader.read(said).pick == "none"
        found.two_verdicts = (found.two_verdicts or 0) + two
    if pick == row["verdict"]:
        found.as_recorded += 1
        found.none += pick is None
        return
    reason = f"read as {pick}, recorded as {row['verdict']}"
    if pick is None:
        reason = f"{read.why}: {read.detail}; recorded as {row['verdict']}"
    found.listed.append((row["pair_id"], row["order"], reason))


def read_all(data: Path) -> list[Reading]:
    """Every file of judge outputs, in order of their names."""
    return [read_file(path) for path in sorted((data / "judge_outputs").glob("*.jsonl.gz"))]


def tables(found: list[Reading]) -> tuple[Table, Table]:
    """What was read, and what was not."""
    read = Table(
        title="Texts read as their recorded verdict",
        columns=(
            *("file", "reader", "texts", "as recorded", "of them none", "share"),
            *("listed", "two verdicts", "records without text"),
        ),
        rows=tuple(map(_line, [*found, _total(found)])),
    )
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in found:
        for pair_id, order, reason in each.listed:
            reasons.setdefault((each.file, reason), []).append(f"{pair_id} ({order})")
    listed = Table(
        title="Texts not read as recorded",
        columns=("file", "reason", "texts", "which"),
        rows=tuple(
            (file, reason, len(places), "; ".join(_some(places)))
            for (file, reason), places in reasons.items()
        ),
    )
    return read, listed


def _line(each: Reading) -> tuple[Any, ...]:
    return (
        each.file,
        ", ".join(each.readers) or "-",
        each.texts,
        each.as_recorded,
        each.none,
        Share(each.as_recorded / each.texts if each.texts else None),
        len(each.listed),
        each.two_verdicts,
        each.without_text,
    )


def _total(found: list[Reading]) -> Reading:
    return Reading(
        file="all",
        readers=(),
        texts=sum(each.texts for each in found),
        as_recorded=sum(each.as_recorded for each in found),
        none=sum(each.none for each in found),
        two_verdicts=sum(each.two_verdicts or 0 for each in found),
        without_text=sum(each.without_text for each in found),
        listed=[place for each in found for place in each.listed],
    )


def _some(places: list[str]) -> Iterator[str]:
    """All of a few; of many the first and how many more."""
    shown = 10
    yield from places if len(places) <= shown else places[:1]
    if len(places) > shown:
        yield f"and {len(places) - 1} more"


def page(found: list[Reading]) -> str:
    """docs/reading.md."""
    return INTRO + render(tables(found), "md") + OUTRO


if __name__ == "__main__":
    print(page(read_all(Path(sys.argv[1]))), end="")
