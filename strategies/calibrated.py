"""A confidence that means something: the raw one mapped to the chance that people agree.

A combinator over any strategy that compares. It changes no winner; it puts the calibrated
confidence beside the raw one and, if told to, abstains where it is too low. Knows no judge, no
prompt and no provider.
"""

from typing import Any

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.model import Outcome, Pair, Undecided, Verdict
from dikast.engine.ports import Ask, Strategy
from dikast.engine.spec import spec_hash, spec_tree
from dikast.strategies.calibration_file import Calibration, raw_of_verdict

VERSION = "1"


class Calibrated:
    """Maps the confidence of another strategy's verdicts; see `calibrated`."""

    def __init__(
        self, inner: Strategy, calibration: Calibration, abstain_below: float | None
    ) -> None:
        self._inner = inner
        self._calibration = calibration
        self._abstain_below = abstain_below

    @property
    def name(self) -> str:
        """`calibrated@version`; what is inside is in `spec()`."""
        return f"calibrated@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """All that decides the result; the calibration by its content hash."""
        return {
            "kind": "calibrated",
            "version": VERSION,
            "calibration": self._calibration.hash,
            "abstain_below": self._abstain_below,
            "inner": dict(self._inner.spec()),
        }

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Judge, then say how likely people are to agree.

        Returns:
            The inner outcome; a verdict has `confidence` (calibrated; None where the raw number
            is missing) and `raw_confidence`. Below `abstain_below`, and where the confidence is
            not known, the pair is undecided ("abstained").

        Raises:
            ProviderError: as the inner strategy raises it.
            RunStopped: the run ends.
        """
        outcome = await self._inner.judge(pair, ask)
        if not isinstance(outcome, Verdict):
            return outcome
        raw = raw_of_verdict(self._calibration.raw, outcome)
        sure = None if raw is None else round(self._calibration.probability(raw), 6)
        if self._abstain_below is not None and (sure is None or sure < self._abstain_below):
            return self._abstained(outcome, raw, sure)
        return msgspec.structs.replace(outcome, confidence=sure, raw_confidence=raw)

    def _abstained(self, verdict: Verdict, raw: float | None, sure: float | None) -> Undecided:
        why = f"the verdict {verdict.winner} has no {self._calibration.raw} to calibrate"
        if sure is not None:
            why = (
                f"people agree with the verdict {verdict.winner} with probability {sure:.3f} "
                f"({self._calibration.raw} {raw:.3f}), below {self._abstain_below:g}"
            )
        return Undecided(
            id=verdict.id,
            why="abstained",
            detail=why,
            votes=verdict.votes,
            parts=verdict.parts,
            marks=verdict.marks,
            length_guard=verdict.length_guard,
        )

    def __repr__(self) -> str:
        return f"Calibrated({self._inner!r}, {self._calibration.hash})"


def calibrated(
    strategy: Strategy,
    calibration: Calibration,
    abstain_below: float | None = None,
    *,
    allow_other_spec: bool = False,
) -> Calibrated:
    """Give the verdicts of a strategy a calibrated confidence.

    Args:
        strategy: compares; its verdicts must have the number that was calibrated.
        calibration: see `load_calibration`; fitted on outcomes of this very strategy.
        abstain_below: verdicts whose calibrated confidence is lower are withheld, 0 to 1; None:
            none is.
        allow_other_spec: use a calibration of another strategy all the same.

    Raises:
        ConfigError: the calibration was fitted on outcomes of another spec, or `abstain_below` is
            out of range.
    """
    if abstain_below is not None and not 0 <= abstain_below <= 1:
        raise ConfigError(f"calibrated: abstain_below = {abstain_below} must lie between 0 and 1")
    here = spec_hash(spec_tree(strategy))
    if calibration.spec != here and not allow_other_spec:
        raise ConfigError(
            f"calibrated: the calibration {calibration.hash} was fitted on outcomes of "
            f"{calibration.strategy} with spec {calibration.spec}, the strategy inside is "
            f"{strategy.name} with spec {here}; fit one on outcomes of this strategy with dikast "
            "calibrate, or set allow_other_spec = true"
        )
    return Calibrated(strategy, calibration, abstain_below)
