"""Clients of librdkafka, made in one place, and what they say of brokers that they cannot talk to.

Settings come from an address; one that the library does not take is the user's to mend, before
anything is read or paid for.
"""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from dikast.engine.errors import ConfigError
from dikast.sinks.kafka.address import KafkaAddress

_SAYS_LITTLE = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT})


class Complaints:
    """What a client has last said of its brokers; goes into its settings as `error_cb`.

    A refused login or a failed handshake says more than the lost connection that follows it.
    """

    def __init__(self) -> None:
        self._last = ""
        self._weight = 0

    def __call__(self, error: KafkaError) -> None:
        weight = 1 if error.code() in _SAYS_LITTLE else 2
        if weight >= self._weight:
            self._last, self._weight = error.str(), weight

    def of(self, client: Consumer | Producer, otherwise: str) -> str:
        """The last complaint of `client`, which is asked for it; `otherwise` where it has none."""
        client.poll(0)
        return self._last or otherwise

    def __repr__(self) -> str:
        return f"Complaints({self._last!r})"


def reason_of(error: KafkaException | SystemError) -> KafkaError:
    """What the library says of a failure.

    A fatal error is raised before the reports of delivery are handed over. The first report is then
    called with an exception under way, of which Python makes a `SystemError` with that cause.

    Raises:
        SystemError: it is another one.
    """
    found = error.__cause__ if isinstance(error, SystemError) else error
    if not isinstance(found, KafkaException):
        raise error
    reason: KafkaError = found.args[0]
    return reason


def consumer(address: KafkaAddress, settings: Mapping[str, Any]) -> Consumer:
    """A consumer with these settings.

    Raises:
        ConfigError: the library does not take them.
    """
    try:
        return Consumer(dict(settings))
    except (KafkaException, TypeError, ValueError) as error:
        raise _refused(address, error) from error


def producer(address: KafkaAddress, settings: Mapping[str, Any]) -> Producer:
    """A producer with these settings.

    Raises:
        ConfigError: the library does not take them.
    """
    try:
        # A topic that was deleted during a run must not come back empty, as if nothing were lost.
        return Producer({**settings, "allow.auto.create.topics": False})
    except (KafkaException, TypeError, ValueError) as error:
        raise _refused(address, error) from error


def _refused(address: KafkaAddress, error: Exception) -> ConfigError:
    reason = error.args[0].str() if isinstance(error, KafkaException) else str(error)
    return ConfigError(
        f"{address.name}: the Kafka client does not take these settings ({reason}); see to the "
        "options of the address (docs/kafka.md)"
    )
