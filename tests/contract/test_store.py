"""What every CallStore promises, run over every implementation."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from dikast.engine.model import Completion, TokenLogprob, TopToken, Usage
from dikast.engine.ports import CallStore
from dikast.engine.store import MemoryStore, SqliteStore

KEY, OTHER = "a" * 32, "b" * 32
RICH = Completion(
    text="[[A]] \u2028 \U0001f600 第一",
    finish_reason="stop",
    usage=Usage(input=10, cached_input=4, output=3, reasoning=1),
    logprobs=(TokenLogprob(token="A", logprob=-0.1, top=(TopToken(token="B", logprob=-2.0),)),),
    latency_s=1.25,
    served_by="model-1",
)


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], CallStore]:
    kept = MemoryStore()
    if request.param == "memory":
        return lambda: kept
    return lambda: SqliteStore(tmp_path / "deep" / "calls.db")


async def test_what_was_put_is_got_back_whole_and_marked_as_stored(
    make: Callable[[], CallStore],
) -> None:
    store = make()
    assert store.get(KEY) is None
    await store.put(KEY, RICH)
    found = store.get(KEY)
    assert found is not None
    assert found.from_store
    assert found == msgspec.structs.replace(RICH, from_store=True)
    assert store.get(OTHER) is None
    await store.aclose()


async def test_it_is_there_after_closing_and_opening(make: Callable[[], CallStore]) -> None:
    store = make()
    await store.put(KEY, RICH)
    await store.aclose()
    await store.aclose()
    again = make()
    found = again.get(KEY)
    assert found is not None
    assert found.text == RICH.text
    await again.aclose()


async def test_the_last_completion_under_a_key_stays(make: Callable[[], CallStore]) -> None:
    store = make()
    await store.put(KEY, Completion(text="first"))
    await store.put(KEY, Completion(text="second"))
    await asyncio.gather(
        store.put(OTHER, Completion(text="third")), store.put(OTHER, Completion(text="fourth"))
    )
    for opened in (store, make()):
        found = [opened.get(key) for key in (KEY, OTHER)]
        assert [each.text for each in found if each is not None] == ["second", "fourth"]
        await opened.aclose()


async def test_hundreds_of_puts_at_once_all_return(make: Callable[[], CallStore]) -> None:
    store = make()
    keys = [f"{number:032x}" for number in range(700)]
    await asyncio.gather(*(store.put(key, Completion(text=key)) for key in keys))
    assert all((found := store.get(key)) is not None and found.text == key for key in keys)
    await store.aclose()
    again = make()
    assert all(again.get(key) is not None for key in keys)
    await again.aclose()


async def test_a_put_that_is_cancelled_does_not_hurt_the_others(
    make: Callable[[], CallStore],
) -> None:
    store = make()
    first = asyncio.create_task(store.put(KEY, RICH))
    second = asyncio.create_task(store.put(OTHER, RICH))
    await asyncio.sleep(0)
    first.cancel()
    await second
    await asyncio.wait([first])
    assert store.get(OTHER) is not None
    assert store.get(KEY) is not None  # the answer is paid: it is kept
    await store.aclose()


async def test_lone_surrogates_are_replaced_and_the_completion_is_kept(
    make: Callable[[], CallStore],
) -> None:
    store = make()
    await store.put(KEY, Completion(text="a\ud800b [[A]]", usage=Usage(output=2)))
    await store.aclose()
    again = make()
    found = again.get(KEY)
    assert found is not None
    assert found.text.endswith("b [[A]]")
    assert found.usage.output == 2
    await again.aclose()
