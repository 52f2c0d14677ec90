"""CSV, Parquet and Arrow as inputs: what people's tables do to a reader."""

import gzip
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.engine.csvrows import read_csv
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.lines import Flaw
from dikast.engine.model import BadRow, Failed, Item, Outcome, Pair, Part, Row, Scored, Vote
from dikast.engine.sources import FileSource
from dikast.engine.tables import OUTCOME_TABLE, PAIR_COLUMNS, RowMaker, outcome_of
from dikast.sinks import open_records

HEADER = "id,question,response_a,response_b,label\n"


async def rows_of(path: Path | str, **options: Any) -> list[Row]:
    return [row async for batch in FileSource(path, **options).batches() for row in batch]


async def pairs_of(path: Path | str, **options: Any) -> list[Pair]:
    items = [row.item for row in await rows_of(path, **options)]
    assert all(isinstance(item, Pair) for item in items), items
    return [item for item in items if isinstance(item, Pair)]


def csv_of(folder: Path, text: str | bytes, name: str = "in.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def table_of(folder: Path, rows: Sequence[Mapping[str, Any]], schema: Any = None) -> Path:
    path = folder / "in.parquet"
    parquet.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    return path


# -- CSV ----------------------------------------------------------------------------------------


async def test_cells_with_newlines_quotes_and_commas_are_whole_and_lines_are_counted(
    tmp_path: Path,
) -> None:
    text = HEADER + '1,"say ""hi"", ok","a\nb\u2028c",y,A\r\n\r\n2,q,x,y,tie\n'
    rows = await rows_of(csv_of(tmp_path, text))
    first, second = (row.item for row in rows)
    assert isinstance(first, Pair)
    assert (first.question, first.response_a, first.label) == ('say "hi", ok', "a\nb\u2028c", "A")
    assert isinstance(second, Pair)
    assert [row.line for row in rows] == [2, 5]


async def test_an_empty_answer_is_an_answer_and_any_other_empty_cell_is_absent(
    tmp_path: Path,
) -> None:
    (pair,) = await pairs_of(csv_of(tmp_path, HEADER + "1,q,,y,\n"))
    assert (pair.response_a, pair.label, pair.meta) == ("", None, {})


@pytest.mark.parametrize(
    ("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.txt", ",")]
)
async def test_the_separator_is_told_by_the_name_or_the_first_line(
    tmp_path: Path, name: str, delimiter: str
) -> None:
    text = (HEADER + "1,q,x,y,B\n").replace(",", delimiter)
    (pair,) = await pairs_of(csv_of(tmp_path, b"\xef\xbb\xbf" + text.encode(), name))
    assert (pair.id, pair.label) == ("1", "B")


async def test_a_damaged_row_is_a_bad_row_in_its_place_and_the_rest_go_on(tmp_path: Path) -> None:
    text = HEADER.encode() + b'1,q,x,y\n2,q,"x"z,y,A\n3,\xff,x,y,A\n4,q,x,y,A\n5,q,x,y,C\n'
    rows = await rows_of(csv_of(tmp_path, text))
    assert [row.line for row in rows] == [2, 3, 4, 5, 6]
    bad = [row.item.message for row in rows if isinstance(row.item, BadRow)]
    assert bad[0] == "has 4 cells, and the first line names 5 columns"
    assert bad[1].startswith("is not CSV: ")
    assert bad[2] == "is not UTF-8 text"
    assert bad[3] == "a label is A, B or tie, not 'C'"
    assert isinstance(rows[3].item, Pair)


async def test_a_quote_that_is_never_closed_is_no_cell(tmp_path: Path) -> None:
    text = HEADER + '1,q,x,y,A\n2,"q,x,y,A\n' + "3,q,x,y,A\n" * 50
    rows = await rows_of(csv_of(tmp_path, text))
    assert [row.line for row in rows] == [2, 3]
    assert isinstance(rows[1].item, BadRow)
    assert "is never closed" in rows[1].item.message


async def test_cells_are_as_long_as_rows_may_be(tmp_path: Path) -> None:
    text = HEADER + f"1,q,{'x' * 300_000},y,A\n2,q,{'x' * 500_000},y,A\n3,q,x,y,A\n"
    rows = await rows_of(csv_of(tmp_path, text), row_bytes_max=400_000)
    assert [type(row.item) for row in rows] == [Pair, BadRow, Pair]
    assert rows[2].line == 4


async def test_a_packed_file_that_breaks_off_says_so_where_it_does(tmp_path: Path) -> None:
    text = HEADER + "".join(f"{n},q{n * n},x{n * 7919},y,A\n" for n in range(5000))
    packed = gzip.compress(text.encode())
    rows = await rows_of(csv_of(tmp_path, packed[: len(packed) // 2], "in.csv.gz"))
    assert len(rows) > 100
    assert all(isinstance(row.item, Pair) for row in rows[:-1])
    last = rows[-1]
    assert isinstance(last.item, BadRow)
    assert "cut off" in last.item.message
    assert last.line == rows[-2].line + 1


async def test_any_number_of_columns_is_read(tmp_path: Path) -> None:
    more = range(50_000)
    text = HEADER.rstrip("\n") + "".join(f",c{n}" for n in more) + "\n"
    (row,) = await rows_of(csv_of(tmp_path, text + "1,q,x,y,A" + ",z" * len(more) + "\n"))
    assert isinstance(row.item, Pair)
    assert len(row.item.meta) == len(more)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,question,id\n1,q,2\n", "line 1: two columns are named 'id'"),
        (",,\n1,2,3\n", "line 1: the first line of a CSV file has to name its columns"),
        ("id,question\r1,q\r", "end lines with a line feed"),
        ("zebra,gnu\n1,2\n", "no known format has these fields: gnu, zebra"),
        ("\ufeff".encode("utf-16-le") + b"i\0d\0", "is UTF-16 text"),
    ],
)
async def test_a_csv_file_that_cannot_be_read_at_all_is_one_clear_error(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        await rows_of(csv_of(tmp_path, text))
    assert message in str(caught.value)
    assert "in.csv" in str(caught.value)


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=3, max_size=3),
        max_size=8,
    ),
    st.integers(1, 9),
)
def test_what_is_written_as_csv_is_read_as_it_was_in_bites_of_any_size(
    rows: list[list[str]], bite: int
) -> None:
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    data = "\r\n".join(["a,b,c", *quoted]).encode()
    chunks: list[bytes | Flaw] = [data[at : at + bite] for at in range(0, len(data), bite)]
    got = read_csv(iter(chunks), tabs=False, row_bytes_max=1000, file="f")
    assert [row.raw for some in got for row in some] == [
        dict(zip("abc", row, strict=True)) for row in rows
    ]


# -- Parquet and Arrow --------------------------------------------------------------------------


async def test_types_of_a_table_come_as_json_knows_them(tmp_path: Path) -> None:
    rows = [
        {
            "id": 7,
            "messages": [{"role": "user", "content": "hi"}],
            "response_a": "x",
            "response_b": "y",
            "label": None,
            "score": float("nan"),
            "price": Decimal("1.50"),
            "raw": b"\xff",
            "extra": {"deep": [{"a": 1, "b": None}]},
        }
    ]
    stamped = pa.Table.from_pylist(rows)
    # Nanoseconds: no type of Python's own holds them.
    when = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))
    path = tmp_path / "in.parquet"
    parquet.write_table(stamped.append_column("when", when), path)
    (pair,) = await pairs_of(path)
    assert (pair.id, pair.label, pair.messages[0].content) == ("7", None, "hi")
    assert pair.meta == {
        "price": 1.5,
        "raw": "/w==",
        "extra": {"deep": [{"a": 1}]},
        "when": "2023-11-14 22:13:20.123456789",
    }
    assert msgspec.json.decode(msgspec.json.encode(pair), type=Pair) == pair


async def test_rows_of_a_table_are_numbered_over_its_row_groups(tmp_path: Path) -> None:
    rows = [{"id": str(n), "question": "q", "response_a": "x", "response_b": "y"}
            for n in range(3000)]  # fmt: skip
    path = tmp_path / "in.parquet"
    parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=700)
    got = await rows_of(path)
    assert [(row.item.id, row.line) for row in got] == [(str(n), n + 1) for n in range(3000)]


async def test_a_wrong_cell_names_row_and_column(tmp_path: Path) -> None:
    rows = [{"id": "1", "prompt": "q", "left": "x", "right": 5}]
    columns = {"question": "prompt", "response_a": "left", "response_b": "right"}
    (row,) = await rows_of(table_of(tmp_path, rows), columns=columns)
    assert row.line == 1
    assert row.item == BadRow(message="expected str, got int", id="1", field="right")


async def test_a_parquet_file_that_is_damaged_inside_keeps_the_rows_before_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "in.parquet"
    rows = [{"id": f"{n * 7919}", "question": f"q{n}", "response_a": "x", "response_b": "y"}
            for n in range(20_000)]  # fmt: skip
    parquet.write_table(
        pa.Table.from_pylist(rows), path, row_group_size=5000, write_page_checksum=True
    )
    data = bytearray(path.read_bytes())
    middle = len(data) * 3 // 5
    data[middle : middle + 20] = b"\xff" * 20
    path.write_bytes(data)
    got = await rows_of(path)
    last = got[-1].item
    assert isinstance(last, BadRow)
    assert "the Parquet data is damaged here" in last.message
    assert [row.item.id for row in got[:-1]] == [row["id"] for row in rows[: len(got) - 1]]
    assert len(got) > 5000
    assert got[-1].line == len(got)


@pytest.mark.parametrize("how", ["length", "text"])
async def test_a_damaged_row_of_an_arrow_file_costs_itself_and_not_the_process(
    tmp_path: Path, how: str
) -> None:
    texts = ["x", "marked", "z", "end"]
    offsets = [0, 1, 7, 8, 11]
    if how == "length":
        offsets = [0, 1, 700_000, 8, 11]
    data = (
        "".join(texts).encode().replace(b"marked", b"mark\xff\xff" if how == "text" else b"marked")
    )
    column = pa.StringArray.from_buffers(
        4, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(data)
    )
    plain = pa.array(["q"] * 4)
    ids = pa.array(["1", "2", "3", "4"])
    batch = pa.RecordBatch.from_arrays(
        [ids, plain, column, plain], ["id", "question", "response_a", "response_b"]
    )
    path = tmp_path / "in.arrow"
    with pa.ipc.new_stream(str(path), batch.schema) as stream:
        stream.write_batch(batch)
    rows = await rows_of(path)
    bad = {"length": [2, 3], "text": [2]}[how]
    assert [row.line for row in rows if isinstance(row.item, BadRow)] == bad
    assert [row.line for row in rows] == [1, 2, 3, 4]
    assert all("is damaged" in row.item.message for row in rows if isinstance(row.item, BadRow))


async def test_a_table_that_was_cut_off_or_is_inside_gzip_is_one_clear_error(
    tmp_path: Path,
) -> None:
    path = table_of(tmp_path, [{"id": "1", "question": "q", "response_a": "", "response_b": ""}])
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.raises(InputError, match="is no Parquet file that can be read"):
        await rows_of(path)
    packed = csv_of(tmp_path, gzip.compress(data), "in.parquet.gz")
    with pytest.raises(InputError, match="is a table inside gzip or zstd; unpack it first"):
        await rows_of(packed)


async def test_class_numbers_of_a_dataset_become_their_names(tmp_path: Path) -> None:
    features = {"label": {"names": ["tie", "B", "A"], "_type": "ClassLabel"}}
    schema = pa.schema(
        [("id", pa.string()), ("question", pa.string()), ("response_a", pa.string()),
         ("response_b", pa.string()), ("label", pa.int64())],
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
    )  # fmt: skip
    rows = [
        {"id": str(n), "question": "q", "response_a": "x", "response_b": "y", "label": n}
        for n in (-1, 0, 1, 2)
    ]
    pairs = await pairs_of(table_of(tmp_path, rows, schema))
    assert [pair.label for pair in pairs] == [None, "tie", "B", "A"]


# -- columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv", "in.parquet"])
async def test_columns_are_renamed_and_the_others_travel_in_meta(tmp_path: Path, name: str) -> None:
    row = {"uid": "1", "prompt": "q", "left": "x", "right": "y", "best": "model_b", "n": "z"}
    path = tmp_path / name
    if name == "in.csv":
        path.write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    elif name == "in.jsonl":
        path.write_text(json.dumps(row) + "\n")
    else:
        table_of(tmp_path, [row])
    columns = {"question": "prompt", "response_a": "left", "response_b": "right", "label": "best"}
    (pair,) = await pairs_of(path, columns=columns)
    assert pair.label == "B"
    assert (pair.question, pair.response_a, pair.response_b) == ("q", "x", "y")
    assert pair.meta == {"uid": "1", "n": "z"}


async def test_a_column_may_lie_inside_another(tmp_path: Path) -> None:
    row = {"turns": ["q", "more"], "out": {"a": "x", "b": "y"}, "id": "1"}
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps(row) + "\n")
    columns = {"question": "turns.0", "response_a": "out.a", "response_b": "out.b"}
    (pair,) = await pairs_of(path, columns=columns)
    assert (pair.question, pair.response_a, pair.response_b) == ("q", "x", "y")


async def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    path = csv_of(tmp_path, "id,prompt,left\n1,q,x\n")
    with pytest.raises(InputError) as caught:
        await rows_of(path, columns={"question": "promt"})
    assert "no column 'promt' for the field 'question'" in str(caught.value)
    assert "id, prompt, left" in str(caught.value)


def test_a_field_that_no_format_has_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no field 'respone_a'"):
        FileSource("x", columns={"respone_a": "left"})


# -- records ------------------------------------------------------------------------------------

ROUND: list[Outcome] = [
    Scored(id="s", scores={}, grade=4.5, model="m", meta={"deep": [1, {"a": None}], "t": "\r\n"}),
    Scored(id="t", scores={"total": 4.0}, file="in.jsonl", line=3, cost_usd=0.25, simulated=True),
    Failed(
        id="f",
        reason="timeout",
        message="",
        attempts=2,
        parts=(Part(name="a", pick="na", parts=(Part(name="b", pick="A", scores={"x": 1.0}),)),),
        votes=(Vote(judge="j", order="ab", pick="A", probabilities={"A": 0.75}, keys=("k", "l")),),
    ),
]


@pytest.mark.parametrize("name", ["o.parquet", "o.arrow", "o.csv", "o.tsv.zst", "o.json"])
async def test_outcomes_come_back_from_a_table_as_they_went_in(tmp_path: Path, name: str) -> None:
    with open_records(str(tmp_path / name), OUTCOME_TABLE) as writer:
        for outcome in ROUND:
            writer.add(outcome)
    source = FileSource(tmp_path / name)
    got = [outcome_of(each) async for batch in source.objects() for _, _, each in batch]
    assert got == ROUND


def test_what_has_no_fixed_shape_is_json_text_and_everything_else_is_typed() -> None:
    json_columns = {name for name, shape in OUTCOME_TABLE.items() if shape.kind == "json"}
    assert json_columns == {"meta", "notes", "parts"}
    assert OUTCOME_TABLE["votes"].kind == "list"
    assert OUTCOME_TABLE["votes"].parts[""].parts["probabilities"].kind == "map"
    assert RowMaker(OUTCOME_TABLE)(ROUND[0])["kind"] == "scored"
    assert next(iter(PAIR_COLUMNS)) == "id"


async def test_single_answers_come_back_from_a_text_table(tmp_path: Path) -> None:
    item = Item(id="1", question="q", response="", grade=3.0, key_points=("a", "b"), model="m")
    path = tmp_path / "items.csv"
    path.write_text(
        'id,question,response,grade,key_points,model\n1,q,,3.0,"[""a"",""b""]",m\n', "utf-8"
    )
    (row,) = await rows_of(path)
    assert row.item == item
