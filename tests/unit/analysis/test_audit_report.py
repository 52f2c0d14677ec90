"""The report's coefficients are those of other libraries, weighted by how pairs were drawn."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from dikast.analysis.audit import read_audit, report
from dikast.analysis.counting import Options
from tests.cli.tools import write_rows
from tests.unit.analysis.test_ratings import outcome

N = 90


def test_weighted_kappa_and_alpha_are_the_textbooks(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    truth = rng.choice(["A", "tie", "B"], N, p=[0.5, 0.2, 0.3])
    other = rng.choice(["A", "tie", "B"], N)
    said = np.where(rng.random(N) < 0.7, truth, other)
    chance = np.where(said == "A", 0.2, 0.9)
    run = write_rows(tmp_path / "run.jsonl", [outcome(f"p{k}", str(said[k])) for k in range(N)])
    rows = [
        {"pair_id": f"p{k}", "label": str(truth[k]), "inclusion_probability": float(chance[k])}
        for k in range(N)
    ]
    labels = write_rows(tmp_path / "labels.jsonl", rows)
    found = report(read_audit(str(run), [str(labels)]), Options(draws=100))
    weights = 1 / chance
    assert found.kappa.value == pytest.approx(cohen_kappa_score(truth, said, sample_weight=weights))
    assert found.effective_n == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    # Krippendorff's alpha from its coincidence matrix, weights scaled to mean 1.
    scaled = weights * N / weights.sum()
    off = 2 * scaled[truth != said].sum()
    margins = [
        scaled[truth == name].sum() + scaled[said == name].sum() for name in ("A", "tie", "B")
    ]
    total = 2 * N
    expected = (total**2 - sum(each**2 for each in margins)) / (total - 1)
    assert found.krippendorff_alpha.value == pytest.approx(1 - off / expected)
