"""Everything a report says, as records: what `--json` prints and what the page is drawn from.

Puts the analyses together and computes nothing of its own; what cannot be said is a sentence in
`absent`, never an empty number.
"""

from typing import Any

import msgspec

from dikast.analysis.agreement import Report as Agreement
from dikast.analysis.agreement import agree, raters_of
from dikast.analysis.bias_report import BiasReport
from dikast.analysis.calibration_curve import Curve
from dikast.analysis.counting import Counting, Options
from dikast.analysis.ranking import Ranking
from dikast.analysis.ratings import NONE, Ratings
from dikast.analysis.report_parts import Preferences, Questions
from dikast.analysis.report_summary import (
    Confusion,
    Digest,
    SampleCount,
    VerdictShares,
    confusions,
    verdict_shares,
)
from dikast.manifest import Manifest

FORMAT = 1


class Source(msgspec.Struct, frozen=True):
    """One outcome file: `manifest` is what lies beside it, `strategies` counts its outcomes."""

    name: str
    path: str
    strategies: dict[str, int]
    manifest: Manifest | None


class Made(msgspec.Struct, frozen=True):
    """How the report was made. `labels` says where labels come from."""

    dikast: str
    level: float
    draws: int
    seed: int
    label_rule: str
    labels: str
    pairs: tuple[str, ...]
    pairs_with_texts: int
    clustered: bool
    prompts: int


class ReportData(msgspec.Struct, frozen=True):
    """The whole report; keys are told in docs/report.md."""

    title: str
    made: Made
    sources: tuple[Source, ...]
    pairs: int
    labelled: int
    verdicts: tuple[VerdictShares, ...]
    ranking: Ranking | None
    agreement: Agreement | None
    confusion: tuple[Confusion, ...]
    bias: BiasReport | None
    calibration: tuple[Curve, ...]
    contested: tuple[SampleCount, ...]
    sesse: dict[str, Questions]
    preferences: dict[str, Preferences]
    absent: dict[str, str]
    format: int = FORMAT


class Parts(msgspec.Struct, frozen=True):
    """What the command has read and computed from more than the ratings."""

    ranking: Ranking | None
    no_ranking: str | None
    bias: BiasReport | None
    digests: tuple[Digest, ...]
    manifests: tuple[Manifest | None, ...]
    shown: dict[tuple[str, str], int]


def report_data(
    title: str, made: Made, ratings: Ratings, parts: Parts, options: Options
) -> ReportData:
    """Put the report together.

    Args:
        title: of the page.
        made: how it is made.
        ratings: all runs.
        parts: see there; one digest and one manifest (or None) for each run, in their order.
        options: of all numbers.
    """
    count = Counting(ratings.clusters, options)
    labels = ratings.truth(options.label_rule)
    labelled = int((labels != NONE).sum())
    curves = [each.curve(count) for each in parts.digests] if labelled else []
    found = ReportData(
        title=title,
        made=made,
        sources=tuple(
            Source(
                digest.run.name, digest.run.path, dict(sorted(digest.strategies.items())), beside
            )
            for digest, beside in zip(parts.digests, parts.manifests, strict=True)
        ),
        pairs=len(ratings),
        labelled=labelled,
        verdicts=verdict_shares(ratings, count),
        ranking=parts.ranking,
        agreement=agree(ratings, options) if len(ratings) else None,
        confusion=confusions(raters_of(ratings), labels) if labelled else (),
        bias=parts.bias,
        calibration=tuple(each for each in curves if each is not None),
        contested=tuple(
            SampleCount(
                digest.run.name, kind, sample.total, parts.shown.get((digest.run.name, kind), 0)
            )
            for digest in parts.digests
            for kind, sample in digest.samples.items()
            if sample.total
        ),
        sesse={
            digest.run.name: questions
            for digest in parts.digests
            if (questions := digest.questions.finish(options.level)) is not None
        },
        preferences={
            digest.run.name: preferences
            for digest in parts.digests
            if (preferences := digest.preferences.finish(options.level)) is not None
        },
        absent={},
    )
    return msgspec.structs.replace(found, absent=_absent(found, parts))


def _absent(data: ReportData, parts: Parts) -> dict[str, str]:
    """One sentence for each section that has nothing to show."""
    lines: dict[str, str] = {}
    if not data.pairs:
        empty = "the outcome files hold no outcome, so there is nothing to count"
        return dict.fromkeys(
            ("verdicts", "ranking", "agreement", "bias", "calibration", "contested"), empty
        )
    judged = sum(each.verdicts for each in data.verdicts)
    if data.ranking is None:
        lines["ranking"] = parts.no_ranking or "there is no battle between two models"
    if not any(each.with_labels for each in (data.agreement,) if each):
        lines["agreement"] = (
            "no pair has a label, so agreement with people cannot be said; judge pairs that carry "
            "one, or give --labels FILE"
            if not data.labelled
            else "no labelled pair is in the outcomes"
        )
    if not data.calibration:
        lines["calibration"] = (
            "no labelled verdict, so nothing to set a confidence against"
            if not data.labelled or not judged
            else "most labelled verdicts have no confidence; several judges or samples, both "
            'orders, or token probabilities (decide = "logprobs") give one'
        )
    return lines


def plain(data: ReportData) -> dict[str, Any]:
    """The report as JSON-ready values; records of the engine with all their fields."""
    made: dict[str, Any] = msgspec.to_builtins(data)
    if data.ranking is not None:
        ranking = msgspec.structs.asdict(data.ranking)
        ranking["models"] = [msgspec.structs.asdict(each) for each in data.ranking.models]
        ranking["settings"] = msgspec.structs.asdict(data.ranking.settings)
        made["ranking"] = msgspec.to_builtins(ranking)
    return made
