"""Every error of the project, drawn as one tree. First stop of a pair that goes wrong.

    DikastError
    |-- InputError            a file, a row or an argument is wrong: where, what, what to do
    |-- ConfigError           the configuration is wrong or incomplete
    |-- SpecMismatchError     an output or artefact was made by another spec; nothing was touched
    |-- ProviderError(kind)   one judge call failed; classified once, at the edge
    |-- StoreError            the call store cannot be read or written
    |-- SinkError             an outcome cannot be written
    |   `-- ReaderGone        the reader of standard output went away
    |-- HandedBack            the row belongs to another worker now; its outcome is not written here
    `-- RunStopped(reason)    the whole run must stop; what is open stays "not run"

Knows nothing of the rest of the package. Provider code raises `ProviderError` with
`raise ... from`; the gateway alone decides whether to try again.
"""

from typing import Any, Literal, get_args

ErrorKind = Literal[
    "rate",  # 429: too fast. Spends no attempt.
    "quota",  # money or daily allowance gone: waiting does not help. Stops the run.
    "transient",  # 5xx, connection refused or reset: worth another attempt
    "timeout",  # no answer within the deadline that began when the request was sent
    "refused",  # the model or a content filter declined to judge
    "bad_request",  # the request itself is wrong; the same request fails again
    "auth",  # the key is wrong or missing. Stops the run.
    "oversized",  # larger than the key's limits will ever admit
    "missing",  # a replayed record does not exist
    "malformed",  # HTTP 200, but not an answer (error body, no choices, not JSON)
    "too_large",  # the answer's body passes the size cap
]
ERROR_KINDS: frozenset[str] = frozenset(get_args(ErrorKind))

StopReason = Literal[
    "budget", "quota", "auth", "limit", "interrupted", "sink", "pipe", "store", "dead", "gate"
]


class DikastError(Exception):
    """Base of all errors that this project raises on purpose; `str()` is one clear sentence."""


class InputError(DikastError):
    """A file, row or argument is wrong.

    Args:
        message: what is wrong and what to do, without the place.
        file: path or name of the input, if any.
        line: one-based line or row number, if any.
        field: name of the field, if any.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.message = message
        self.file = file
        self.line = line
        self.field = field
        place = ", ".join(
            part
            for part in (
                file,
                f"line {line}" if line is not None else None,
                f"field {field!r}" if field else None,
            )
            if part
        )
        super().__init__(f"{place}: {message}" if place else message)


class ConfigError(DikastError):
    """The configuration is wrong or incomplete; the message names the field and the remedy."""


class SpecMismatchError(DikastError):
    """An existing output was produced by another spec; it is neither mixed nor overwritten."""


class ProviderError(DikastError):
    """One judge call failed, classified at the edge.

    Args:
        kind: see `ErrorKind`.
        message: one sentence, free of keys and of answer text.
        status: HTTP status, if there was one.
        retry_after_s: seconds the provider asked to wait, if it said so.
        reused_connection: the connection was taken from the pool and was already dead, so the
            request was never processed: it may be sent again at once.

    `votes` and `parts` are records of `engine.model`: what the other members of a vote said, or
    the other order of a swap, so that a failed outcome still shows what was paid for.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        reused_connection: bool = False,
    ) -> None:
        self.kind: ErrorKind = kind
        self.message = message
        self.status = status
        self.retry_after_s = retry_after_s
        self.reused_connection = reused_connection
        self.attempts = 1
        self.votes: tuple[Any, ...] = ()
        self.parts: tuple[Any, ...] = ()
        super().__init__(f"{kind}: {message}")

    def beside(self, votes: tuple[Any, ...], parts: tuple[Any, ...]) -> "ProviderError":
        """The same error with what was said beside it; a copy, as pairs may share an error."""
        if not votes and not parts:
            return self
        copy = ProviderError(
            self.kind,
            self.message,
            status=self.status,
            retry_after_s=self.retry_after_s,
            reused_connection=self.reused_connection,
        )
        copy.attempts, copy.votes, copy.parts = self.attempts, votes, parts
        return copy


class StoreError(DikastError):
    """The call store cannot be opened, read or written."""


class SinkError(DikastError):
    """An outcome cannot be written; the run stops and is resumable."""


class ReaderGone(SinkError):  # noqa: N818 - it is a fact, not a defect
    """Nobody reads standard output any more: it was a pipe, and its other end is closed."""


class HandedBack(DikastError):  # noqa: N818 - it is a fact, not a defect
    """The row was given to another worker of its group while it was judged here.

    Raised by a sink instead of writing: the other worker writes it. The row stays "not run" here.
    """


class RunStopped(DikastError):  # noqa: N818 - it is a decision, not a defect
    """The run must stop now; pairs that are open stay "not run" and a resume takes them up."""

    def __init__(self, reason: StopReason, message: str) -> None:
        self.reason: StopReason = reason
        self.message = message
        super().__init__(message)
