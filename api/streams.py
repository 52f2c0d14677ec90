"""From `kafka://` addresses to sources and sinks; the client library is loaded only for them.

Part of the wiring, in a module of its own because everything here needs an extra.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from dikast.engine.errors import ConfigError, SpecMismatchError
from dikast.engine.ledger import Held
from dikast.engine.ports import Clock, Sink, Source, StreamSource
from dikast.extras import needed

if TYPE_CHECKING:
    from dikast.sinks import kafka

_SCHEME = "kafka://"


class TopicDone(Protocol):
    """What an output topic says about earlier runs."""

    done: int
    retry: int
    specs: dict[str, int]

    def is_done(self, id: str) -> bool:
        """True when an outcome of `id` is there and stands."""
        ...

    def held(self) -> Held:
        """What is there, less what was replaced since."""
        ...

    def replaced(self, id: str) -> None:
        """A new outcome of `id` is there."""
        ...


def is_kafka(where: str) -> bool:
    """True when `where` is meant as the address of a topic."""
    return where.startswith(_SCHEME)


def _kafka() -> Any:
    return needed("dikast.sinks.kafka", "kafka", "kafka://")


def open_source(paths: Sequence[str], form: str | None) -> Source:
    """The source over one topic.

    Raises:
        ConfigError: the address is wrong, or other inputs stand beside it.
        InputError: the format is not known.
    """
    if len(paths) != 1:
        raise ConfigError("a topic cannot be judged together with other inputs; name it alone")
    library = _kafka()
    source: Source = library.KafkaSource(library.parse_address(paths[0]), form=form or "auto")
    return source


def is_exactly_once(source: Source) -> bool:
    """True when the source's address asks for transactions."""
    address = getattr(source, "address", None)
    return bool(getattr(address, "exactly_once", False))


def check_topics(where: Sequence[str], source: Source) -> None:
    """See that no topic is written twice, and that none is read by the same command.

    Raises:
        ConfigError: one is; its outcomes would stand there twice, or come back as input for ever.
    """
    taken: set[tuple[str, str]] = set()
    for address in (_kafka().parse_address(each) for each in where if is_kafka(each)):
        place = (address.servers, address.topic)
        if place in taken:
            raise ConfigError(f"{address.name}: is written twice; name another topic")
        if isinstance(source, StreamSource) and address.topic == source.address.topic:  # type: ignore[attr-defined]
            raise ConfigError(
                f"{address.name}: is read by the same command, so outcomes would come back as "
                "input; name another topic"
            )
        taken.add(place)


def open_sink(where: str, *, clock: Clock, tell: Callable[[str], None]) -> Sink:
    """The sink into a topic; `tell` is told at the end of what went elsewhere.

    Raises:
        ConfigError: the address is wrong.
    """
    library = _kafka()
    address = library.parse_address(where)
    if address.exactly_once:
        raise ConfigError(
            f"{address.name}: exactly_once belongs to the address of the input topic; an output "
            "alone is idempotent and is resumed from what it holds"
        )
    sink: Sink = library.KafkaSink(address, run=_run_name(clock), tell=tell)
    return sink


def open_transactional(
    where: str,
    more: Sequence[str],
    source: "Source",
    *,
    clock: Clock,
    tell: Callable[[str], None],
) -> Sink:
    """The sink whose transactions carry the source's positions; `tell` as in `open_sink`.

    Raises:
        ConfigError: the output is no topic of the same brokers, or there are further sinks.
    """
    library = _kafka()
    if more:
        raise ConfigError("exactly_once covers one output topic; --sink cannot be added to it")
    if not is_kafka(where):
        raise ConfigError(
            f"{where}: with exactly_once the output has to be a topic: -o kafka://HOST:PORT/TOPIC "
            "(a file as output is resumed from what it holds and needs no transaction)"
        )
    address = library.parse_address(where)
    if address.servers != source.address.servers:  # type: ignore[attr-defined]
        raise ConfigError(
            f"{address.name}: with exactly_once input and output have to be on the same brokers"
        )
    name = _run_name(clock)
    sink: Sink = library.TransactionalSink(
        address, source, run=name, member=name, clock=clock, tell=tell
    )
    return sink


def with_commits(sink: Sink, source: Source) -> Sink:
    """The sink, with the positions of a topic as source committed after it."""
    if not isinstance(source, StreamSource):
        return sink
    committing: Sink = _kafka().CommittingSink(sink, source)
    return committing


async def done_in(where: str, source: Source, spec: str) -> TopicDone | None:
    """What an output topic holds of earlier runs; None when it is empty or positions tell it.

    Raises:
        SpecMismatchError: another spec produced it.
        InputError: it holds something else than outcomes.
        SinkError: it cannot be read.
    """
    if isinstance(source, StreamSource):
        return None  # the group's positions say what is done
    library = _kafka()
    address = library.parse_address(where)
    scan: kafka.TopicScan | None = await asyncio.to_thread(library.scan_topic, address)
    if scan is None:
        return None
    others = [each for each in scan.specs if each != spec]
    if others:
        raise SpecMismatchError(
            f"{address.name}: was produced by other settings (spec {others[0]} there, {spec} "
            "here); use the old settings or name another topic"
        )
    return scan


def is_stream(source: Source) -> bool:
    """True when the source hands out a row once: what is committed is not read again."""
    return isinstance(source, StreamSource)


def lag_of(source: Source) -> Callable[[], int | None] | None:
    """Reads the source's lag, where it has one."""
    if not isinstance(source, StreamSource):
        return None
    return lambda: getattr(source, "lag", None)


def _run_name(clock: Clock) -> str:
    """Tells this process's run from all others."""
    return f"{clock.stamp()}-{socket.gethostname()}-{os.getpid()}"
