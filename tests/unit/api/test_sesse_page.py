"""The page of `dikast sesse evaluate`: whole, self-contained, and safe against what files hold."""

from html.parser import HTMLParser

from dikast.analysis.sesse_report import Report, Source, report_of
from dikast.analysis.sesse_rows import EvalRow, QuestionVote
from dikast.commands.sesse_page import page
from dikast.commands.sesse_tables import tables
from dikast.tables import render

_VOID = {"meta", "br", "img"}
HOSTILE = '"><img src=x onerror=alert(1)>'


class Balance(HTMLParser):
    """Sees that every element is closed, and collects what is linked."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.linked: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.linked += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def report(subset: str = "s", *, simulated: bool = True) -> Report:
    rows = [
        EvalRow(
            id=f"{HOSTILE}{n}",
            label="A",
            sesse="A" if n % 3 else "tie",
            holistic="A" if n % 2 else "B",
            subset=subset,
            a=n % 3,
            b=n % 2,
            tie=None if n % 3 else "equal",
            selected=("c",),
            votes=(QuestionVote("q1", "c", 0, "A"), QuestionVote("q2", "c", 1, "na")),
            cosine=n / 30,
        )
        for n in range(30)
    ]
    source = Source("lib", HOSTILE, 2, "spec", simulated, {}, 3.0, None)
    return report_of(rows, source, by_depth={1: rows, 2: rows}, reference=rows)


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    found = report()
    text = page(found, tables(found))
    balance = Balance()
    balance.feed(text)
    assert balance.open == []
    assert balance.linked == []
    assert balance.seen.count("svg") == 2
    assert balance.seen.count("table") == len(tables(found))


def test_names_stay_text() -> None:
    found = report(HOSTILE)
    balance = Balance()
    balance.feed(page(found, tables(found)))
    assert "img" not in balance.seen
    assert "script" not in balance.seen


def test_a_simulated_judge_is_said_to_be_one_and_a_real_one_is_not() -> None:
    assert "The judge is simulated" in page(report(), [])
    assert "simulated" not in page(report(simulated=False), [])
    assert "SIMULATED" in render(tables(report()), "md")


def test_every_table_says_what_it_counts() -> None:
    assert all(each.notes for each in tables(report()))
