"""How sure a judge was, from the log probabilities of the token that carries its verdict.

Called by the reader when it has found a verdict and the completion lists token probabilities.
The verdict's token is located by its place in the text, never by looking for a letter: a "B"
in the reasoning is not the verdict. Knows no markers, no JSON and no prompts.
"""

import math
from collections.abc import Mapping

from dikast.engine.model import Completion, Pick, TokenLogprob

_DRESS = " \t\r\n\"'`*_[](){}<>:.,#\u201c\u201d\u2018\u2019"


def verdict_confidence(
    completion: Completion, start: int, labels: Mapping[str, Pick], pick: Pick
) -> float | None:
    """The share of `pick` among the verdicts the judge could have written at `start`.

    Every alternative the provider listed at that token is mapped to a verdict where it begins
    exactly one label; alternatives for the same verdict add up; the rest is left out.

    Args:
        completion: the judge's answer with `logprobs`.
        start: character position of the verdict's first letter in `completion.text`.
        labels: the bare words of the verdicts, folded to lower case, with what they mean.
        pick: the verdict that was read.

    Returns:
        0 to 1, or None when the tokens do not spell the text, or say nothing of this place.
    """
    token = _token_at(completion, start)
    if token is None:
        return None
    mass: dict[Pick, float] = {}
    listed = {top.token: top.logprob for top in token.top}
    listed.setdefault(token.token, token.logprob)
    for text, logprob in listed.items():
        meant = _meaning(text, labels)
        if meant is not None:
            mass[meant] = mass.get(meant, 0.0) + math.exp(min(0.0, logprob))
    total = sum(mass.values())
    return mass[pick] / total if mass.get(pick, 0.0) > 0.0 else None


def _token_at(completion: Completion, start: int) -> TokenLogprob | None:
    """The token that covers character `start`, if the tokens up to there spell the text."""
    if completion.logprobs is None or start < 0:
        return None
    position = 0
    for token in completion.logprobs:
        if not completion.text.startswith(token.token, position):
            return None
        position += len(token.token)
        if position > start:
            return token
    return None


def _meaning(token: str, labels: Mapping[str, Pick]) -> Pick | None:
    bare = token.strip(_DRESS).casefold()
    if not bare:
        return None
    meant: set[Pick] = {pick for label, pick in labels.items() if label.startswith(bare)}
    return meant.pop() if len(meant) == 1 else None
