"""Anchors that go along in `dikast judge`: judged first, compared, and put to use.

What moved is told and goes into the manifest; a gate stops the run before a pair is paid for; a
correction puts the scores of this run on the baseline's scale, keeping the judge's own beside
them. Every run on an output judges the anchors anew, so a resumed part is held against today.
"""

import argparse
import hashlib
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dikast import wiring
from dikast.analysis.correction import Correction, Method, fit
from dikast.commands.anchors_files import (
    AnchorRun,
    AnchorSet,
    check_comparable,
    read_run,
    read_set,
    ref_of,
    write_record,
)
from dikast.commands.anchors_run import judge_set
from dikast.config import AnchorSettings, Settings
from dikast.engine.errors import ConfigError, RunStopped, SpecMismatchError
from dikast.engine.model import Outcome, Pair, Verdict
from dikast.engine.ports import Ask, Clock, Strategy
from dikast.engine.run import Engine
from dikast.extras import needed
from dikast.signals import drain_then_cancel


class Corrected:
    """A strategy whose scores are put on the baseline's scale; the winner stays.

    Args:
        inner: judges.
        method: how the map is fitted.
        anchors: what it is fitted on, as plain data.
    """

    def __init__(self, inner: Strategy, method: Method, anchors: Mapping[str, Any]) -> None:
        self._inner = inner
        self._method = method
        self._anchors = anchors
        self.correction: Correction | None = None

    @property
    def name(self) -> str:
        """The name of the strategy inside."""
        return self._inner.name

    def spec(self) -> dict[str, Any]:
        """That it corrects, how, and on which anchors; the map itself is today's."""
        return {
            "kind": "corrected",
            "method": self._method,
            "anchors": dict(self._anchors),
            "inner": dict(self._inner.spec()),
        }

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Judge, then correct. Source: `Strategy.judge`."""
        outcome = await self._inner.judge(pair, ask)
        if not isinstance(outcome, Verdict) or not outcome.scores:
            return outcome
        if self.correction is None:
            raise ConfigError("scores cannot be corrected before the anchors are judged")
        return msgspec.structs.replace(
            outcome,
            scores=self.correction(outcome.scores),
            raw_scores=outcome.scores,
            correction=self.correction.id,
        )

    def __repr__(self) -> str:
        return f"Corrected({self._inner!r}, {self._method})"


class AnchorLane:
    """The anchors of one run of `dikast judge`; made by `open_lane`.

    Args:
        settings: of the run; its strategy judges the anchors too.
        chosen: what to do with the anchors.
        anchors: the set.
        baseline: what to compare with, or None.
        clock: time.
    """

    def __init__(
        self,
        settings: Settings,
        chosen: AnchorSettings,
        anchors: AnchorSet,
        baseline: AnchorRun | None,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._chosen = chosen
        self._anchors = anchors
        self._baseline = baseline
        self._clock = clock
        # Looked for now: that it is not installed must not be found out after a call is paid.
        self._report = needed("dikast.commands.anchors_check", "analysis", "judging with --anchors")
        self._engine: Engine | None = None
        self._corrected: Corrected | None = None
        self._run: AnchorRun | None = None
        self._found: dict[str, Any] = {}
        self._verdict = ""
        self.spent_usd = 0.0

    @property
    def corrects(self) -> bool:
        """Whether scores will be put on the baseline's scale."""
        return self._chosen.correction != "none"

    def wrap(self, strategy: Strategy) -> Strategy:
        """The strategy of the run: the one given, with its scores corrected if that was asked."""
        if self._chosen.correction == "none":
            return strategy
        assert self._baseline is not None
        on = {
            "set": self._anchors.hash,
            "baseline": hashlib.sha256(msgspec.json.encode(self._baseline)).hexdigest()[:16],
        }
        self._corrected = Corrected(strategy, self._chosen.correction, on)
        return self._corrected

    def stop(self, count: int, which: signal.Signals) -> None:
        """Pass a signal on to the anchors, while they are being judged."""
        if self._engine is not None:
            drain_then_cancel(self._engine)(count, which)

    async def judge(self, share_budget: Callable[[Engine], None]) -> list[str]:
        """Judge the anchors and compare; lines to tell.

        Args:
            share_budget: makes an engine count its spending with the earlier runs on the output.

        Raises:
            RunStopped: they could not all be judged.
            SpecMismatchError: the baseline is of another set or of other settings.
            ConfigError: no correction can be fitted.
        """
        # An engine of its own, without the run's store: anchors measure today's judge.
        engine = wiring.build_engine(self._settings, clock=self._clock, counted=True)
        share_budget(engine)
        async with engine:
            self._engine = engine
            if self._baseline is not None and engine.spec != self._baseline.spec:
                self._refuse(engine)
            try:
                self._run = await judge_set(engine, self._anchors, self._clock)
            finally:
                self.spent_usd = engine.snapshot().ledger.spent_usd
                self._engine = None
        lines = [f"anchors {self._run.anchors}: {len(self._run.items)} judged"]
        report, limits = self._report, self._chosen.tolerance()
        if self._baseline is None:
            return [*lines, *report.standing(self._run, limits)]
        found = report.compare(self._baseline, self._run, limits)
        self._found = report.machine(found, self._baseline, self._run)
        self._verdict = report.conclusion(found)
        lines.append(self._verdict)
        if (said := report.warning(found)) is not None:
            lines.append(f"warning: {said}")
        if self._corrected is not None:
            self._corrected.correction = made = self._fit()
            lines.append(f"scores are corrected: {made.id} of {', '.join(made.maps)}")
        return lines

    def _refuse(self, engine: Engine) -> None:
        """Before a call is paid: the settings are not those of the baseline."""
        assert self._baseline is not None
        now = msgspec.structs.replace(
            self._baseline,
            spec=engine.spec,
            spec_tree=msgspec.to_builtins(engine.spec_tree),
        )
        check_comparable(self._baseline, now, str(self._chosen.baseline), "this run")

    def _fit(self) -> Correction:
        assert self._baseline is not None
        assert self._run is not None
        assert self._chosen.correction != "none"
        today = {each.id: each.scores for each in self._run.items}
        before = {each.id: each.scores for each in self._baseline.items}
        ids = [each.id for each in self._anchors.pairs]
        try:
            return fit(
                self._chosen.correction,
                [before.get(id, {}) for id in ids],
                [today[id] for id in ids],
            )
        except ValueError as error:
            raise ConfigError(
                f"anchors.correction = {self._chosen.correction!r}: {error}; use more anchors, or "
                "a strategy that gives scores"
            ) from error

    def pass_gate(self) -> None:
        """Go on, unless there is a gate and the anchors have moved.

        Raises:
            RunStopped: with the reason "gate".
        """
        if self._chosen.gate and self._found and not self._found["in_control"]:
            raise RunStopped(
                "gate",
                f"anchors {self._verdict}; no pair was judged; see what has changed with: dikast "
                "anchors check, and record a new baseline or judge without the gate",
            )

    def write_run(self, output: Path | None) -> None:
        """Keep today's run on the anchors beside the output, as `OUT.anchors.json`."""
        if output is not None and self._run is not None:
            write_record(output.with_name(f"{output.name}.anchors.json"), self._run)

    def state(self) -> dict[str, Any]:
        """What the manifest keeps: the set, the comparison, the correction with its parameters."""
        run, made = self._run, None if self._corrected is None else self._corrected.correction
        return {
            "anchors": msgspec.to_builtins(ref_of(self._anchors)),
            "judged": None if run is None else run.judged,
            "items": len(self._anchors.pairs),
            "verdicts": 0 if run is None else sum(each.kind == "verdict" for each in run.items),
            "spent_usd": self.spent_usd,
            "gate": self._chosen.gate,
            "baseline": self._chosen.baseline,
            "check": self._found or None,
            "correction": (
                None
                if made is None
                else {"id": made.id, "method": made.method, "maps": msgspec.to_builtins(made.maps)}
            ),
        }


def open_lane(args: argparse.Namespace, settings: Settings, clock: Clock) -> AnchorLane | None:
    """The anchors that the command line or the configuration asks for; None without.

    Raises:
        InputError: a file cannot be read, or is not what it should be.
        SpecMismatchError: the baseline is of another set.
        ConfigError: a gate or a correction has nothing to work on.
    """
    chosen = _chosen(args, settings)
    if chosen.set is None:
        if chosen.gate or chosen.correction != "none" or chosen.baseline is not None:
            raise ConfigError(
                "a baseline, a gate and a correction need anchors: name the set with --anchors "
                "FILE or anchors.set"
            )
        return None
    if chosen.baseline is None and (chosen.gate or chosen.correction != "none"):
        raise ConfigError(
            "an anchors' gate and a correction need something to compare with: name a run with "
            "--baseline FILE or anchors.baseline; make one with: dikast anchors run"
        )
    anchors = read_set(chosen.set)
    baseline = None if chosen.baseline is None else read_run(chosen.baseline)
    if baseline is not None and baseline.anchors.hash != anchors.hash:
        raise SpecMismatchError(
            f"{chosen.baseline}: is a run on the anchors {baseline.anchors}, and {chosen.set} "
            f"holds {ref_of(anchors)}; record a new baseline with: dikast anchors run"
        )
    return AnchorLane(settings, chosen, anchors, baseline, clock)


def _chosen(args: argparse.Namespace, settings: Settings) -> AnchorSettings:
    """The configuration's anchors with the command line above them; paths made whole."""
    chosen = settings.anchors
    for name in ("set", "baseline"):
        if (path := getattr(chosen, name)) is not None:
            chosen = msgspec.structs.replace(chosen, **{name: str(settings.base_dir / path)})
    said: dict[str, Any] = {
        name: value
        for name, value in (
            ("set", args.anchors),
            ("baseline", args.baseline),
            ("correction", args.correction),
            ("gate", args.anchors_gate or None),
        )
        if value is not None
    }
    return msgspec.structs.replace(chosen, **said)
