"""Every recorded text is read as its recorded verdict or listed with a reason; the page says so."""

from collections import Counter
from pathlib import Path

from bench.reading import page, read_all
from bench.recorded import rows

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reading.md"


def test_every_text_is_read_as_recorded_or_listed_with_a_reason(data: Path) -> None:
    found = read_all(data)
    records = {
        path.name.removesuffix(".jsonl.gz"): [row["raw"] is not None for row in rows(path)]
        for path in (data / "judge_outputs").glob("*.jsonl.gz")
    }
    assert {each.file for each in found} == set(records)
    for each in found:
        assert each.texts == sum(records[each.file])
        assert each.texts + each.without_text == len(records[each.file])
        assert each.texts == each.as_recorded + len(each.listed), each.file
        assert all(reason for _, _, reason in each.listed)
        # None of the listed is a verdict that nobody gave: all of them are without one.
        assert not any(reason.startswith("read as") for _, _, reason in each.listed), each.file
    # All that is listed is in two files: debates without a verdict, and grades in free sentences.
    listed = Counter({each.file: len(each.listed) for each in found if each.listed})
    assert set(listed) == {"faireval80_chateval", "vicuna80_reviews"}
    assert listed["vicuna80_reviews"] / sum(records["vicuna80_reviews"]) < 0.01
    assert PAGE.read_text(encoding="utf-8") == page(found), "run python -m bench.reading DATA"
