"""Simulated battles whose truth is known."""

from collections.abc import Sequence

import numpy as np

from dikast.analysis.ranking import BattleLog, Battles, Result


def names(count: int) -> list[str]:
    return [f"m{place:02d}" for place in range(count)]


def play(
    strengths: Sequence[float],
    *,
    prompts: int,
    battles_a_prompt: int = 4,
    repeats: int = 1,
    prompt_sd: float = 0.0,
    tie_logit: float | None = None,
    seed: int = 0,
) -> Battles:
    """Battles of random pairs. Each prompt favours each model by a normal effect of `prompt_sd`,
    and `repeats` judges decide every battle of it; ties follow Davidson's model."""
    rng = np.random.default_rng(seed)
    models = names(len(strengths))
    log = BattleLog()
    for prompt in range(prompts):
        favour = (
            rng.normal(0.0, prompt_sd, len(strengths)) if prompt_sd else np.zeros(len(strengths))
        )
        for battle in range(battles_a_prompt):
            i, j = rng.choice(len(strengths), size=2, replace=False)
            d = strengths[i] - strengths[j] + favour[i] - favour[j]
            for repeat in range(repeats):
                log.add(
                    f"{prompt}:{battle}:{repeat}",
                    models[i],
                    models[j],
                    outcome(d, tie_logit, rng),
                    cluster=str(prompt),
                    judge=f"judge{repeat}",
                )
    return log.finish()


def outcome(d: float, tie_logit: float | None, rng: np.random.Generator) -> Result:
    """One result when A is better by d logits."""
    weights = [np.exp(d / 2), np.exp(-d / 2), 0.0 if tie_logit is None else np.exp(tie_logit)]
    drawn = rng.random() * sum(weights)
    if drawn < weights[0]:
        return "A"
    return "B" if drawn < weights[0] + weights[1] else "tie"
