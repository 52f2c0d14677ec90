"""The whole path from draw to report covers what it promises, in clustered data and any design."""

from pathlib import Path

import numpy as np
import pytest

from dikast.analysis.audit import read_audit, report
from dikast.analysis.audit_sample import draw
from dikast.analysis.counting import Options
from tests.cli.tools import write_rows
from tests.unit.analysis.test_ratings import outcome

RUNS = 100


@pytest.mark.slow
def test_weighted_agreement_covers_what_it_promises(tmp_path: Path) -> None:
    """Prompts of one to three pairs, a judge that is right on 80 % and less where in doubt."""
    rng = np.random.default_rng(12)
    hits = kappas = 0
    for seed in range(RUNS):
        rows, truth = [], {}
        for prompt in range(120):
            hard = rng.random() < 0.4
            for k in range(rng.integers(1, 4)):
                name = f"{prompt}.{k}"
                truth[name] = "A" if rng.random() < 0.5 else "B"
                right = rng.random() < (0.575 if hard else 0.95)
                winner = truth[name] if right else "B" if truth[name] == "A" else "A"
                doubt = 0.6 if hard else 1.0
                meta = {"question_id": prompt}
                rows.append(outcome(name, winner, confidence=doubt, meta=meta))
        run = write_rows(tmp_path / "run.jsonl", rows)
        lines = [
            {**each._asdict(), "pair_id": each.id, "label": truth[each.id]}
            for each in draw(str(run), 100, "uncertainty", seed=seed).drawn
        ]
        labels = write_rows(tmp_path / "labels.jsonl", lines)
        made = report(read_audit(str(run), [str(labels)]), Options(draws=400, seed=seed))
        agreement, kappa = made.agreement["three-way"].interval, made.kappa.interval
        assert agreement is not None
        assert kappa is not None
        hits += agreement.low <= 0.8 <= agreement.high
        kappas += kappa.low <= 0.6 <= kappa.high
    assert 0.9 <= hits / RUNS <= 0.99
    assert 0.9 <= kappas / RUNS <= 0.99
