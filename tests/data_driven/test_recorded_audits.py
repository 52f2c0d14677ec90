"""Audits of real judges by real people: small samples find what all labels say, the judge does not.

Every pair of these sets has people's labels. An audit sees a sample of them and must find the
figures of the whole; the tests draw many samples and count how often its intervals do.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dikast.analysis.audit import Report, read_audit, report
from dikast.analysis.audit_sample import How, draw
from dikast.analysis.counting import Options
from tests.cli.tools import write_rows
from tests.data_driven.outcome_files import Row, by_id, rows, verdict_rows, write_outcomes

DRAWS = 40


def audited(
    folder: Path, run: Path, votes: Callable[[str], list[Row]], how: How, n: int, seed: int
) -> Report:
    """One audit: draw, let the people who labelled the drawn pairs speak, report."""
    lines = [
        {
            "pair_id": each.id,
            "annotator": vote["annotator"],
            "label": vote["label"],
            "inclusion_probability": each.inclusion_probability,
            "stratum": each.stratum,
            "stratum_pairs": each.stratum_pairs,
        }
        for each in draw(str(run), n, how, seed=seed).drawn
        for vote in votes(each.id)
    ]
    labels = write_rows(folder / "labels.jsonl", lines)
    audit = read_audit(str(run), [str(labels)])
    return report(audit, Options(draws=100, label_rule="plurality"))


def mtbench(data: Path, folder: Path) -> tuple[Path, dict[str, Row]]:
    """The published GPT-4 verdicts on the pairs of MT-Bench that experts voted on."""
    pairs = by_id(data / "pairs" / "mtbench_human.jsonl.gz")
    found = rows(data / "judge_outputs" / "mtbench_gpt4_pair.jsonl.gz")
    mine = (row for row in found if row["pair_id"] in pairs)
    return write_outcomes(folder / "run.jsonl", verdict_rows(mine, pairs)), pairs


@pytest.mark.slow
@pytest.mark.parametrize("how", ["uniform", "stratified"])
def test_samples_of_150_find_what_all_experts_say(data: Path, tmp_path: Path, how: Any) -> None:
    run, pairs = mtbench(data, tmp_path)

    def votes(name: str) -> list[Row]:
        found: list[Row] = pairs[name]["votes"]
        return found

    whole = audited(tmp_path, run, votes, "uniform", 10**6, 0)
    truth = {each.name: each.rate.labels_only for each in whole.win_rates}
    accuracy = whole.agreement["three-way"].value
    assert whole.labelled == whole.pairs > 700
    assert accuracy is not None
    hits = seen = accurate = 0
    own = corrected = gap = judge_gap = 0.0
    for seed in range(DRAWS):
        found = audited(tmp_path, run, votes, how, 150, seed)
        assert found.accuracy.interval is not None
        accurate += found.accuracy.interval.low <= accuracy <= found.accuracy.interval.high
        for each in found.win_rates:
            rate, value = each.rate, truth[each.name]
            assert rate.value is not None
            assert rate.predicted is not None
            assert rate.interval is not None
            assert rate.labels_only_interval is not None
            assert value is not None
            seen += 1
            hits += rate.interval.low <= value <= rate.interval.high
            corrected += rate.interval.high - rate.interval.low
            own += rate.labels_only_interval.high - rate.labels_only_interval.low
            gap += rate.value - value
            judge_gap = max(judge_gap, abs(rate.predicted - value))
    # The target is these prompts and no others, so intervals for all prompts cover it more often.
    assert hits / seen >= 0.93
    assert accurate / DRAWS >= 0.9
    assert corrected < 0.93 * own
    assert abs(gap / seen) < 0.01 < judge_gap
