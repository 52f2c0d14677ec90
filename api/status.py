"""Exit statuses: what a run tells the shell. Stands at the very end of the journey."""

from dikast.engine.run import RunReport

OK = 0
FAILURES = 1
BAD_INPUT = 2
STOPPED = 3
GATE = 4
INTERRUPTED = 130
BROKEN_PIPE = 141


def of_stop(reason: str) -> int:
    """The status of a run that stopped for `reason` (a `StopReason`)."""
    known = {
        "interrupted": INTERRUPTED,
        "auth": BAD_INPUT,
        "limit": OK,
        "gate": GATE,
        "pipe": BROKEN_PIPE,
    }
    return known.get(reason, STOPPED)


def of_report(report: RunReport) -> int:
    """The status of a finished run. Undecided pairs were judged; failed ones were not.

    A ledger that does not add up is never a success.
    """
    if report.stopped is not None and of_stop(report.stopped) != OK:
        return of_stop(report.stopped)
    if report.ledger.failed_total or report.ledger.not_run or not report.ledger.adds_up():
        return FAILURES
    return OK
