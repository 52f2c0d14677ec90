"""Recorded outputs are served by pair, judge, template, order and repetition, or are missing."""

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Call, Judge, Params, TokenLogprob
from dikast.providers.replay import ReplayProvider, ReplaySettings, find_files

ROWS: list[dict[str, Any]] = [
    {"pair_id": "p1", "judge": "gpt", "template": "t", "order": "ab", "raw": "one", "extra": 1},
    {"pair_id": "p1", "judge": "gpt", "template": "t", "order": "ba", "raw": "two"},
    {"pair_id": "p1", "judge": "gpt", "template": "t", "order": "ab", "raw": "rep", "repeat": 1},
    {"pair_id": "p1", "judge": "gpt", "template": "u", "order": "ab", "raw": "cut"}
    | {"finish": "length"},
    {"pair_id": "p2", "judge": "gpt", "template": "t", "order": "ab", "raw": None, "verdict": "A"},
    {"pair_id": "p3", "judge": "gpt", "template": "t", "order": "ab", "raw": "a\u2028b\u0085c"},
]


def file_of(folder: Path, rows: list[dict[str, Any]] = ROWS, name: str = "rows.jsonl") -> Path:
    path = folder / name
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n\n"
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def provider_of(*paths: Path | str, **settings: Any) -> ReplayProvider:
    chosen = ReplaySettings(paths=tuple(map(str, paths)), **settings)
    return ReplayProvider(find_files("r", chosen), chosen)


def call_for(pair_id: str = "p1", order: str = "ab", sample: int = 0, **judge: Any) -> Call:
    fields: dict[str, Any] = {"name": "j", "provider": "r", "model": "gpt", "by_pair": True}
    chosen = Judge(**(fields | judge))
    return Call(
        judge=chosen,
        messages=(),
        prompt="x",
        pair_id=pair_id,
        order=order,  # type: ignore[arg-type]
        sample=sample,
    )


async def text_of(provider: ReplayProvider, call: Call) -> str:
    return (await provider.complete(call)).completion.text


async def missing(provider: ReplayProvider, call: Call) -> str:
    with pytest.raises(ProviderError) as caught:
        await provider.complete(call)
    assert caught.value.kind == "missing"
    return caught.value.message


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
async def test_order_and_repetition_choose_the_record(tmp_path: Path, name: str) -> None:
    provider = provider_of(file_of(tmp_path, name=name), template="t")
    assert await text_of(provider, call_for()) == "one"
    assert await text_of(provider, call_for(order="ba")) == "two"
    assert await text_of(provider, call_for(sample=1)) == "rep"
    assert await text_of(provider, call_for("p3")) == "a\u2028b\u0085c"


async def test_a_judge_may_name_a_template_of_its_own(tmp_path: Path) -> None:
    provider = provider_of(file_of(tmp_path), template="t")
    call = call_for(params=Params(extra={"template": "u"}))
    completion = (await provider.complete(call)).completion
    assert (completion.text, completion.finish_reason) == ("cut", "length")
    assert completion.served_by == "replay:gpt"


async def test_repetitions_may_be_counted_from_another_number(tmp_path: Path) -> None:
    provider = provider_of(file_of(tmp_path), template="t", first_repeat=1)
    assert await text_of(provider, call_for(sample=0)) == "rep"


async def test_a_missing_record_names_what_was_looked_for(tmp_path: Path) -> None:
    provider = provider_of(file_of(tmp_path), template="t")
    text = await missing(provider, call_for("p9", "ba", 2))
    for part in ("'p9'", "'gpt'", "'t'", "ba", "2"):
        assert part in text


async def test_a_record_without_text_is_missing_although_it_has_a_verdict(tmp_path: Path) -> None:
    provider = provider_of(file_of(tmp_path), template="t")
    assert "no text" in await missing(provider, call_for("p2"))


async def test_a_judge_must_say_which_record_it_wants(tmp_path: Path) -> None:
    cases: tuple[tuple[dict[str, Any], dict[str, Any], str], ...] = (
        ({"template": "t"}, {"by_pair": False}, "by_pair"),
        ({}, {}, "template"),
    )
    for settings, judge, word in cases:
        provider = provider_of(file_of(tmp_path), **settings)
        with pytest.raises(ProviderError, match=word) as caught:
            await provider.complete(call_for(**judge))
        assert caught.value.kind == "bad_request"


async def test_a_broken_line_is_told_by_its_place_for_every_call(tmp_path: Path) -> None:
    path = file_of(tmp_path, [ROWS[0], {"pair_id": 7}])
    provider = provider_of(path, template="t")
    for _ in range(2):
        assert "rows.jsonl, line 2" in await missing(provider, call_for())
    with pytest.raises(ProviderError):
        await provider.check()


async def test_a_broken_gzip_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(ROWS[0]).encode() * 50)[:-20])
    assert "cannot be read" in await missing(provider_of(path, template="t"), call_for())


async def test_two_different_outputs_for_one_call_are_refused(tmp_path: Path) -> None:
    same = file_of(tmp_path, [ROWS[0], ROWS[0]], "same.jsonl")
    assert await text_of(provider_of(same, template="t"), call_for()) == "one"
    differ = file_of(tmp_path, [ROWS[0], ROWS[0] | {"raw": "other"}], "differ.jsonl")
    assert "line 2" in await missing(provider_of(differ, template="t"), call_for())


def test_patterns_are_expanded_and_an_empty_one_is_named(tmp_path: Path) -> None:
    paths = [file_of(tmp_path, name=name) for name in ("b.jsonl", "a.jsonl")]
    pattern = str(tmp_path / "*.jsonl")
    settings = ReplaySettings(paths=(pattern, str(paths[0])))
    assert find_files("r", settings) == sorted(paths)
    for wrong in ((str(tmp_path / "none*"),), ()):
        with pytest.raises(ConfigError, match=r"providers\.r\.paths"):
            find_files("r", ReplaySettings(paths=wrong))


async def test_real_recorded_outputs_are_served_whole(data: Path) -> None:
    files = ("llmbar__gpt_4", "mtbench_pb_repetition", "devbench_pb__gemini-pro", "llmfao")
    paths = [data / "judge_outputs" / f"{name}.jsonl.gz" for name in files]
    provider = provider_of(*paths)
    decoder = msgspec.json.Decoder(dict[str, Any])
    served = empty = 0
    for path in paths:
        for row in map(decoder.decode, gzip.decompress(path.read_bytes()).splitlines()):
            params = Params(extra={"template": row["template"]})
            call = call_for(
                row["pair_id"],
                row["order"],
                row.get("repeat") or 0,
                model=row["judge"],
                params=params,
            )
            if row["raw"] is None:
                await missing(provider, call)
                empty += 1
            else:
                assert await text_of(provider, call) == row["raw"]
                served += 1
    assert served == 5910 - 1970 + 2808 + 1120  # rating templates have grades, but no text
    assert empty == 3246 + 1970


async def test_recorded_token_probabilities_are_served_to_a_judge_that_asks_for_them(
    tmp_path: Path,
) -> None:
    tokens = [{"token": "one", "logprob": -0.1, "top": [{"token": "two", "logprob": -2.5}]}]
    provider = provider_of(file_of(tmp_path, [ROWS[0] | {"logprobs": tokens}]), template="t")
    asked = (await provider.complete(call_for(params=Params(logprobs=True)))).completion
    plain = (await provider.complete(call_for())).completion
    assert asked.logprobs is not None
    assert msgspec.convert(tokens, tuple[TokenLogprob, ...]) == asked.logprobs
    assert plain.logprobs is None


async def test_a_record_of_several_texts_is_missing_and_the_others_are_served(
    tmp_path: Path,
) -> None:
    several = ROWS[1] | {"raw": [{"role": "Alice", "evaluation": "Assistant 2"}]}
    provider = provider_of(file_of(tmp_path, [ROWS[0], several]), template="t")
    assert await text_of(provider, call_for()) == "one"
    assert "the record has no text" in await missing(provider, call_for(order="ba"))
