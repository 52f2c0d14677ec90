"""Logs of a run: an observer that writes what happened to stderr, configured by the CLI only.

One canonical line per pair at debug level, retries and pauses at info, stops at warning. Knows
no key, no header and no answer text: events carry none.
"""

import sys
from typing import Any, Literal, TextIO

import structlog

from dikast.engine.events import (
    CallFailed,
    CallRetried,
    Event,
    KeyPaused,
    LimitChanged,
    PairDone,
    RunStarted,
    RunStopping,
)
from dikast.engine.model import Outcome, Scored, Undecided, Verdict

LogFormat = Literal["console", "json"]
LEVELS: dict[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def build_logger(
    level: str = "warning", form: LogFormat = "console", stream: TextIO | None = None
) -> Any:
    """A logger of its own, without touching structlog's global configuration.

    Args:
        level: one of `LEVELS`; what is below is not even rendered.
        form: "json" for one JSON object a line, "console" for people.
        stream: where to write; stderr by default.
    """
    target = stream if stream is not None else sys.stderr
    renderer: Any
    if form == "json":
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=target.isatty())
    return structlog.wrap_logger(
        structlog.PrintLogger(target),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        cache_logger_on_first_use=True,
    )


class LogObserver:
    """Writes one line per event worth telling; cheap when the level says no.

    Args:
        logger: from `build_logger`, or any structlog logger.
        level: the level it was built with, so that unwanted lines are not even prepared.
    """

    def __init__(self, logger: Any, level: str = "warning") -> None:
        self._log = logger
        self._debug = LEVELS[level] <= LEVELS["debug"]
        self._info = LEVELS[level] <= LEVELS["info"]

    def __call__(self, event: Event) -> None:
        """See `Observer`."""
        if isinstance(event, PairDone):
            if self._debug:
                self._log.debug("pair_done", **pair_line(event.outcome, event.duration_s))
        elif isinstance(event, RunStopping):
            self._log.warning("run_stopping", reason=event.reason, message=event.message)
        elif self._info:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        if isinstance(event, CallRetried):
            self._log.info(
                "call_retried",
                provider=event.pacer,
                pair=event.pair_id,
                kind=event.kind,
                attempt=event.attempt,
                wait_s=round(event.wait_s, 3),
            )
        elif isinstance(event, CallFailed):
            self._log.info(
                "call_failed",
                provider=event.pacer,
                pair=event.pair_id,
                kind=event.kind,
                attempts=event.attempts,
                message=event.message,
            )
        elif isinstance(event, KeyPaused):
            self._log.info(
                "key_paused", provider=event.pacer, wait_s=round(event.wait_s, 3), why=event.why
            )
        elif isinstance(event, LimitChanged):
            self._log.info(
                "limit_changed",
                provider=event.pacer,
                what=event.what,
                value=round(event.value, 3),
                why=event.why,
            )
        elif isinstance(event, RunStarted):
            self._log.info("run_started", spec=event.spec, strategy=event.strategy)

    def __repr__(self) -> str:
        return f"LogObserver(debug={self._debug}, info={self._info})"


def pair_line(outcome: Outcome, duration_s: float) -> dict[str, Any]:
    """The canonical line of a pair: all that is needed to explain it later, and no text."""
    line: dict[str, Any] = {
        "pair": outcome.id,
        "duration_s": round(duration_s, 4),
        "calls": outcome.calls,
        "stored_calls": outcome.stored_calls,
        "tokens_in": outcome.usage.input,
        "tokens_out": outcome.usage.output,
        "cost_usd": round(outcome.cost_usd, 6),
        "strategy": outcome.strategy,
    }
    if isinstance(outcome, Verdict):
        line |= {"result": outcome.winner, "basis": outcome.basis}
    elif isinstance(outcome, Scored):
        line |= {"result": "scored", "total": outcome.scores.get("total")}
    elif isinstance(outcome, Undecided):
        line |= {"result": "undecided", "why": outcome.why}
    else:
        line |= {"result": "failed", "why": outcome.reason, "message": outcome.message}
    if outcome.simulated:
        line["simulated"] = True
    return line
