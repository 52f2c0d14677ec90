"""The configuration of a run: a TOML file as typed settings, before any pair moves.

    [providers.NAME]  a model API, its limits and the variable that holds its key
    [judges.NAME]     a model behind a provider, asked how, at which price
    [templates]       further prompt files, by name
    [strategy]        the tree of how a pair is judged
    [pacing]          limits that several workers share
    [run]             workers, seed, money, retries, store, shutdown
    [anchors]         items judged in every run, and how far they may move
    [input]           which column stands for which field, format, split

Every field carries its unit and default; docs/configuration.md is rendered from here. Builds
nothing: `dikast.wiring` does.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from dikast.analysis.tolerance import Tolerance, check_tolerance
from dikast.engine.columns import parse_columns
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.model import Judge, Params, Prices
from dikast.engine.pacing import Limits
from dikast.engine.retry import RetryPolicy
from dikast.providers import ProviderSettings
from dikast.strategies import StrategyConfig
from dikast.toml_check import join, nearest, read_table, read_union, refuse_secrets


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all settings: immutable, named fields, nothing unknown."""


class PriceSettings(Section, frozen=True):
    """US dollars per million tokens. Without them money is neither counted nor capped."""

    input: float = 0.0
    """USD per million input tokens."""
    cached_input: float | None = None
    """USD per million input tokens served from the provider's cache; absent: as `input`."""
    cache_write: float | None = None
    """USD per million input tokens written to the provider's cache; absent: as `input`."""
    output: float = 0.0
    """USD per million output tokens, reasoning included."""


class JudgeSettings(Section, frozen=True):
    """One judge: a model behind a provider, and how it is asked."""

    provider: str
    """Name of a `[providers.NAME]` table."""
    model: str
    """Model name as the provider spells it."""
    temperature: float | None = 0.0
    """Sampling temperature; 0 asks for the most likely answer. See `send_temperature`."""
    send_temperature: bool = True
    """False leaves the temperature out, for models that refuse it."""
    top_p: float | None = None
    """Nucleus sampling share, 0 to 1; absent: not sent."""
    max_tokens: int = 1024
    """The most tokens that an answer may have; also what a call reserves of the token rate."""
    seed: int | None = None
    """Sampling seed sent to the provider; absent: not sent."""
    reasoning_effort: str | None = None
    """For reasoning models, such as "low", "medium", "high"; absent: not sent."""
    logprobs: bool = False
    """Ask for log probabilities of the generated tokens."""
    top_logprobs: int | None = None
    """How many candidate tokens to list at each place; absent: not sent."""
    json_mode: bool = False
    """Ask the provider for a JSON object (its `response_format`)."""
    extra: dict[str, Any] = {}
    """Further request fields, sent as they stand."""
    prices: PriceSettings | None = None
    """Prices in USD per million tokens; needed for `budget_usd`."""
    family: str | None = None
    """Model family, for checks of self-preference."""
    by_pair: bool = False
    """The answer depends on the pair and the order, not on the prompt alone; true by itself for
    judges behind a `replay` provider."""


class LimitSettings(Section, frozen=True):
    """The limits of a provider's key, of any kind. What is not stated is learned while running."""

    requests_per_min: int | None = None
    """Requests per minute that the provider allows; absent: learned from headers and 429s."""
    tokens_per_min: int | None = None
    """Tokens per minute, input and output together; absent: not held back by tokens."""
    concurrency: int = 512
    """The most requests in the air at once."""
    concurrency_start: int | None = None
    """Requests in the air to begin with; absent: 8 when `requests_per_min` is unknown, else all."""

    def limits(self) -> Limits:
        """As the engine's pacer takes them."""
        return Limits(
            requests_per_min=self.requests_per_min,
            tokens_per_min=self.tokens_per_min,
            concurrency_max=self.concurrency,
            concurrency_start=self.concurrency_start,
        )


class RetrySettings(Section, frozen=True):
    """When a failed call is tried again. A 429 spends no attempt, it only waits."""

    attempts: int = 5
    """The most attempts for one call."""
    base_s: float = 0.5
    """Seconds that the back-off starts from; it doubles with each attempt, drawn below that."""
    cap_s: float = 30.0
    """Seconds that one back-off never exceeds."""
    total_s: float = 600.0
    """Seconds after which a failing call is given up."""
    rate_total_s: float = 3600.0
    """Seconds after which a call that meets nothing but 429 is given up."""

    def policy(self) -> RetryPolicy:
        """As the engine's gateway takes it."""
        return RetryPolicy(
            attempts_max=self.attempts,
            base_s=self.base_s,
            cap_s=self.cap_s,
            total_s=self.total_s,
            rate_total_s=self.rate_total_s,
        )


class RunSettings(Section, frozen=True):
    """How a run is carried out. Nothing here changes what a judge is asked, except `seed`."""

    workers: int = 256
    """Pairs that are judged at the same time."""
    seed: int = 0
    """Decides the order of the answers where one order is asked, and the fences in the prompts."""
    budget_usd: float | None = None
    """US dollars that one run never exceeds, calls in flight included; absent: no cap. A resumed
    run counts anew."""
    budget_total_usd: float | None = None
    """US dollars that all runs of `dikast judge` on one output together never exceed, counted from
    the manifest beside it; absent: no cap. The first of the two budgets that is used up ends a
    run."""
    limit: int | None = None
    """The most input rows that are read; absent: all."""
    drain_s: float = 30.0
    """Seconds that the first Ctrl-C gives to what is in flight before it is cancelled."""
    store: str | None = None
    """Path of the call store; absent: `dikast-calls.sqlite` beside the output."""
    no_store: bool = False
    """True pays again for calls that were answered before."""
    retry: RetrySettings = RetrySettings()
    """Bounds of the retries, as a table `[run.retry]`."""


class AnchorSettings(Section, frozen=True):
    """Items judged in every run, to see whether the judge has changed (docs/anchors.md)."""

    set: str | None = None
    """Path of the anchor set; absent: no anchors go along."""
    baseline: str | None = None
    """Path of the run on them that today's is compared with; absent: nothing is compared."""
    gate: bool = False
    """True ends a run with status 4, before any pair is judged, when the anchors have moved."""
    correction: Literal["none", "affine", "isotonic"] = "none"
    """Puts scores on the baseline's scale; the judge's own stay beside them."""
    alpha: float = 0.01
    """Chance of a false alarm of one whole check."""
    max_shift_sd: float = 0.2
    """Tolerated shift of a dimension's mean, in standard deviations of the baseline's scores."""
    max_ks: float = 0.1
    """Tolerated Kolmogorov-Smirnov distance between a dimension's scores then and now."""
    max_win_shift: float = 0.05
    """Tolerated change of the share of wins of A, ties counting half."""
    max_flip_rate: float = 0.25
    """Tolerated share of verdicts that are not what they were; judges asked again change some."""
    max_missing: float = 0.1
    """Tolerated share of anchors that had a verdict in the baseline and have none today."""
    min_agreement: float = 0.7
    """Share of labels that the judge has to agree with; below it a warning is given."""

    def tolerance(self) -> Tolerance:
        """As the check takes it.

        Raises:
            ConfigError: a limit is out of range.
        """
        names = Tolerance.__struct_fields__
        limits = Tolerance(**{name: getattr(self, name) for name in names})
        check_tolerance(limits)
        return limits


class InputSettings(Section, frozen=True):
    """How the input is read. What the command line says goes above it."""

    format: str | None = None
    """Name of a format (docs/formats.md); absent: recognised."""
    split: str | None = None
    """The part of a dataset that is wanted, such as "train"; absent: the only one."""
    columns: dict[str, str] = {}
    """Column of the input by field, such as `question = "prompt"`, as a table `[input.columns]`."""


class PacingSettings(Section, frozen=True):
    """Limits of keys that several workers use at the same time, on one machine or many."""

    shared: str | None = None
    """Address of a Redis through which all workers share the limits of their keys, such as
    `redis://host:6379/0`; absent: every worker paces alone."""
    prefix: str = "dikast"
    """Stands before the names of keys in Redis; workers with the same prefix and the same provider
    names share a limit."""
    password_env: str = "DIKAST_REDIS_PASSWORD"
    """Environment variable that holds the password of Redis, where it wants one."""
    workers: int = 1
    """The fewest workers to reckon with when Redis is gone: each then takes the limit divided by
    this, or by the workers last seen if they were more."""


class ProviderEntry(Section, frozen=True):
    """One `[providers.NAME]` table: what its kind needs, and the limits of its key."""

    settings: ProviderSettings
    limits: LimitSettings = LimitSettings()


class Settings(Section, frozen=True):
    """A whole configuration, checked."""

    providers: dict[str, ProviderEntry] = {}
    judges: dict[str, JudgeSettings] = {}
    templates: dict[str, str] = {}
    """Prompt files by the name that a strategy gives as `template`; relative to this file."""
    strategy: StrategyConfig | None = None
    run: RunSettings = RunSettings()
    anchors: AnchorSettings = AnchorSettings()
    input: InputSettings = InputSettings()
    pacing: PacingSettings = PacingSettings()
    base_dir: Path = Path()
    """Folder that relative paths in the configuration start from."""


SECTIONS = ("providers", "judges", "templates", "strategy", "run", "anchors", "input", "pacing")


def load_settings(path: Path) -> Settings:
    """Read and check a configuration file.

    Raises:
        InputError: the file cannot be read or is not TOML.
        ConfigError: a field is unknown, of the wrong type or missing, or holds a secret.
    """
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not valid TOML: {error}", file=str(path)) from error
    try:
        return parse_settings(raw, path.parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse_settings(raw: Mapping[str, Any], base_dir: Path = Path()) -> Settings:
    """Check a configuration given as plain data.

    Raises:
        ConfigError: with the path of the field that is wrong.
    """
    for name in raw:
        if name not in SECTIONS:
            raise ConfigError(f"{name}: unknown section{nearest(name, SECTIONS)}")
    refuse_secrets(raw)
    settings = Settings(
        providers={
            name: read_provider(table, join("providers", name))
            for name, table in _table(raw, "providers").items()
        },
        judges=read_table(_table(raw, "judges"), dict[str, JudgeSettings], "judges"),
        templates=read_table(_table(raw, "templates"), dict[str, str], "templates"),
        strategy=(
            read_union(raw["strategy"], StrategyConfig, "strategy") if "strategy" in raw else None
        ),
        run=read_table(_table(raw, "run"), RunSettings, "run"),
        anchors=read_table(_table(raw, "anchors"), AnchorSettings, "anchors"),
        input=read_table(_table(raw, "input"), InputSettings, "input"),
        pacing=read_table(_table(raw, "pacing"), PacingSettings, "pacing"),
        base_dir=base_dir,
    )
    check_names(settings)
    _check_ranges(settings.run)
    settings.anchors.tolerance()
    _check_pacing(settings.pacing)
    return settings


def with_input(
    given: InputSettings, format: str | None, split: str | None, columns: str | None
) -> InputSettings:
    """How the input is read: what the command line says goes above the configuration.

    Raises:
        ConfigError: `columns` is no list of FIELD=COLUMN.
    """
    added = {} if columns is None else parse_columns(columns)
    return InputSettings(
        format=given.format if format is None else format,
        split=given.split if split is None else split,
        columns={**given.columns, **added},
    )


def check_names(settings: Settings) -> None:
    """Every judge must name a provider that exists.

    Raises:
        ConfigError: it does not; says which are there.
    """
    for name, judge in settings.judges.items():
        if judge.provider not in settings.providers:
            raise ConfigError(
                f"judges.{name}.provider: there is no [providers.{judge.provider}]"
                f"{nearest(judge.provider, list(settings.providers))}"
            )


# Each worker is a task; beyond this the pairs in work no longer fit into a machine's memory.
WORKERS_MAX = 100_000


def _check_ranges(run: RunSettings) -> None:
    for name, value, least, most in (
        ("workers", run.workers, 1, WORKERS_MAX),
        ("seed", run.seed, 0, 2**63 - 1),
        ("limit", run.limit, 0, math.inf),
        ("drain_s", run.drain_s, 0, math.inf),
        ("budget_usd", run.budget_usd, 0, math.inf),
        ("budget_total_usd", run.budget_total_usd, 0, math.inf),
        ("retry.attempts", run.retry.attempts, 1, math.inf),
    ):
        if value is None:
            continue
        # Written so that "not a number" is refused too: it compares false with everything.
        if not value >= least:
            raise ConfigError(f"run.{name}: must be at least {least}, not {value}")
        if not value <= most:
            raise ConfigError(f"run.{name}: must be at most {most}, not {value}")


def _check_pacing(pacing: PacingSettings) -> None:
    if pacing.workers < 1:
        raise ConfigError(f"pacing.workers: must be at least 1, not {pacing.workers}")
    if pacing.shared is None:
        return
    scheme, _, rest = pacing.shared.partition("://")
    if scheme not in ("redis", "rediss") or not rest:
        raise ConfigError(
            "pacing.shared: must be the address of a Redis, such as redis://host:6379/0"
        )
    if not all(each.isdecimal() for each in rest.partition("?")[0].split("/")[1:] if each):
        raise ConfigError(
            "pacing.shared: what follows the port must be the number of a database, such as /0"
        )
    if "@" in rest:
        raise ConfigError(
            "pacing.shared: must not hold a login; put the password into the variable "
            f"{pacing.password_env}"
        )


def _table(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = raw.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{name}: must be a table, written [{name}] or [{name}.NAME]")
    return cast("dict[str, Any]", table)


def read_provider(raw: object, path: str) -> ProviderEntry:
    """Split a provider's table into the limits of its key and the settings of its kind.

    Raises:
        ConfigError: with the path of the field that is wrong.
    """
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: must be a table")
    table = cast("dict[str, Any]", raw)
    fields = set(provider_fields(table.get("kind")))
    names = {field.encode_name for field in msgspec.structs.fields(LimitSettings)}
    limits = {name: value for name, value in table.items() if name in names}
    rest = {name: value for name, value in table.items() if name not in names or name in fields}
    for name in rest:
        if fields and name not in fields and name != "kind":
            raise ConfigError(
                f"{join(path, name)}: unknown field{nearest(name, sorted(fields | names))}"
            )
    if rest.get("api_key_env") == "":  # TOML has no null
        rest["api_key_env"] = None
    return ProviderEntry(
        settings=read_union(rest, ProviderSettings, path),
        limits=read_table(limits, LimitSettings, path),
    )


def provider_kinds() -> dict[str, type[msgspec.Struct]]:
    """The settings type of every provider kind."""
    kinds: Sequence[type[msgspec.Struct]] = ProviderSettings.__args__
    return {str(each.__struct_config__.tag): each for each in kinds}


def provider_fields(kind: object) -> list[str]:
    """Names of the settings of a provider kind; empty when there is no such kind."""
    found = provider_kinds().get(str(kind))
    return [] if found is None else list(found.__struct_encode_fields__)


def make_judge(
    name: str, settings: JudgeSettings, *, by_pair: bool = False, endpoint: str = ""
) -> Judge:
    """The judge as the engine knows it; `endpoint` is what stands behind its provider."""
    prices = settings.prices
    return Judge(
        name=name,
        provider=settings.provider,
        endpoint=endpoint,
        model=settings.model,
        params=Params(
            temperature=settings.temperature if settings.send_temperature else None,
            top_p=settings.top_p,
            max_tokens=settings.max_tokens,
            seed=settings.seed,
            reasoning_effort=settings.reasoning_effort,
            logprobs=settings.logprobs,
            top_logprobs=settings.top_logprobs,
            json_mode=settings.json_mode,
            extra=settings.extra,
        ),
        prices=(
            None
            if prices is None
            else Prices(
                input=prices.input,
                cached_input=prices.cached_input,
                cache_write=prices.cache_write,
                output=prices.output,
            )
        ),
        family=settings.family,
        by_pair=by_pair or settings.by_pair,
    )
