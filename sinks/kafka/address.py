"""What a `kafka://` address says, turned into settings of a client; secrets come from elsewhere.

    kafka://host:port[,host:port]/topic?name=value&...

Read once before a run. A password is never part of an address: addresses stand in command lines,
manifests and logs. Knows nothing of records.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl

from dikast.engine.errors import ConfigError
from dikast.engine.model import Record

ValueFormat = Literal["json", "msgpack"]
From = Literal["earliest", "latest"]
Security = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]

SCHEME = "kafka://"
USERNAME_ENV, PASSWORD_ENV, KEY_PASSWORD_ENV = (
    "DIKAST_KAFKA_USERNAME",
    "DIKAST_KAFKA_PASSWORD",
    "DIKAST_KAFKA_KEY_PASSWORD",
)
_PASS_ON = "x."
_SECRETS = ("password", "passphrase", "secret", "key.pem", "sasl.oauthbearer.config")
# What the guarantees of this package rest on is not for an address to change.
_FIXED = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.idempotence",
        "group.id",
        "isolation.level",
        "metadata.broker.list",
        "request.required.acks",
        "transactional.id",
    }
)


class KafkaAddress(Record, frozen=True):
    """One topic and how to talk to its brokers.

    `group` is the consumer group of a source. `until` is "end" for a source that ends when its
    group has done what was in the topic at the start, "never" (default) for one that waits for
    more. `exactly_once` joins source and sink in transactions. `dead_letter` is the topic of
    records that the broker finds too large. `delivery_s` is how long a record may take to be
    confirmed, `ask_s` any other answer of a broker, `close_s` the end of a run, `drain_s` the open
    rows of a partition that is taken away. `window` is how far reading may be ahead of a slow row.
    `client` are settings of librdkafka, without secrets.
    """

    servers: str
    topic: str
    group: str = ""
    format: ValueFormat = "json"
    start: From = "earliest"
    until: Literal["never", "end"] = "never"
    exactly_once: bool = False
    dead_letter: str = ""
    compression: str = "zstd"
    delivery_s: float = 120.0
    close_s: float = 30.0
    drain_s: float = 30.0
    ask_s: float = 15.0
    window: int = 16384
    client: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The address without its options, for messages."""
        return f"{SCHEME}{self.servers}/{self.topic}"

    def common(self, env: Mapping[str, str]) -> dict[str, Any]:
        """Settings that producers and consumers share.

        Args:
            env: where user name and passwords are looked up.

        Raises:
            ConfigError: SASL is configured and the environment has no password.
        """
        settings: dict[str, Any] = {
            "bootstrap.servers": self.servers,
            "client.id": "dikast",
            "log_level": 2,
            **self.client,
        }
        if settings.get("security.protocol", "").startswith("sasl"):
            for name, field in ((USERNAME_ENV, "sasl.username"), (PASSWORD_ENV, "sasl.password")):
                if not env.get(name):
                    raise ConfigError(
                        f"{self.name}: SASL needs the environment variable {name}, which is not set"
                    )
                settings[field] = env[name]
        if env.get(KEY_PASSWORD_ENV):
            settings["ssl.key.password"] = env[KEY_PASSWORD_ENV]
        return settings


def parse_address(text: str) -> KafkaAddress:
    """Read an address.

    Raises:
        ConfigError: it is no address, an option is unknown or out of range, or it holds a secret.
    """
    place, _, query = text.removeprefix(SCHEME).partition("?")
    servers, _, topic = place.partition("/")
    if not text.startswith(SCHEME) or not servers or not topic or "/" in topic:
        raise ConfigError(
            f"{_hidden(text)!r}: is no address of a topic; write kafka://HOST:PORT/TOPIC?OPTIONS"
        )
    if "@" in servers:
        raise ConfigError(
            f"kafka address of topic {topic!r}: user and password do not belong in an address; "
            f"set {USERNAME_ENV} and {PASSWORD_ENV} and add security=sasl_ssl"
        )
    fields: dict[str, Any] = {}
    client: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        _take(f"kafka address of topic {topic!r}", name, value, fields, client)
    if fields.get("dead_letter") == topic:
        raise ConfigError(
            f"kafka address of topic {topic!r}: dead letters need a topic of their own, or a "
            "resume would take them for outcomes; name another one with dead_letter=TOPIC"
        )
    return KafkaAddress(servers=servers, topic=topic, client=client, **fields)


def _take(
    where: str, name: str, value: str, fields: dict[str, Any], client: dict[str, str]
) -> None:
    """Enter one option where it belongs."""
    if name.startswith(_PASS_ON):
        setting = name.removeprefix(_PASS_ON)
        if any(word in setting for word in _SECRETS):
            raise ConfigError(
                f"{where}: {name} is a secret and belongs in no address; what can be set is "
                f"{PASSWORD_ENV} and {KEY_PASSWORD_ENV}"
            )
        if setting in _FIXED:
            raise ConfigError(f"{where}: {name} cannot be changed; dikast's guarantees rest on it")
        client[setting] = value
    elif name == "security":
        client["security.protocol"] = _one_of(where, name, value, get_args(Security))
    elif name == "mechanism":
        client["sasl.mechanism"] = value
    elif name in _FILES:
        client[_FILES[name]] = value
    elif name in _WORDS:
        fields[_FIELDS.get(name, name)] = _one_of(where, name, value, _WORDS[name])
    elif name in ("group", "dead_letter"):
        fields[name] = value
    elif name == "exactly_once":
        fields[name] = _one_of(where, name, value, ("true", "false")) == "true"
    elif name in _NUMBERS:
        fields[name] = _number(where, name, value)
    else:
        known = ("group", "dead_letter", "exactly_once", "security", "mechanism")
        names = sorted((*known, *_FILES, *_WORDS, *_NUMBERS))
        raise ConfigError(
            f"{where}: there is no option {name!r}; known are {', '.join(names)}, and "
            f"{_PASS_ON}NAME for a setting of librdkafka"
        )


_FILES = {"ca": "ssl.ca.location", "cert": "ssl.certificate.location", "key": "ssl.key.location"}
_FIELDS = {"from": "start"}
_WORDS: dict[str, tuple[str, ...]] = {
    "format": get_args(ValueFormat),
    "from": get_args(From),
    "until": ("never", "end"),
    "compression": ("none", "gzip", "snappy", "lz4", "zstd"),
}
_NUMBERS: dict[str, tuple[float, float]] = {
    "delivery_s": (1, 3600),
    "close_s": (0, 3600),
    "drain_s": (0, 3600),
    "ask_s": (0.1, 3600),
    "window": (1, 20_000),
}


def _one_of(where: str, name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ConfigError(f"{where}: {name}={value} is not known; use {' or '.join(known)}")
    return value


def _number(where: str, name: str, value: str) -> float | int:
    low, high = _NUMBERS[name]
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        raise ConfigError(f"{where}: {name}={value} must be a number from {low:g} to {high:g}")
    return int(number) if name == "window" else number


def _hidden(text: str) -> str:
    """An address that could not be read, without what may be a login in it."""
    head, at, tail = text.rpartition("@")
    return f"{SCHEME}***@{tail}" if at and head else text
