"""Elo: the sequential rating, for comparison. It depends on the order of the battles.

Computed by evalica. Source: Elo 1978, The Rating of Chessplayers; K and start as in Chatbot Arena.
"""

import evalica
import numpy as np
from evalica import Winner

from dikast.analysis.ranking.battles import A, B, Battles, Floats

START_POINTS = 1000.0
K_POINTS = 4.0


def elo(battles: Battles) -> Floats:
    """Elo ratings after all battles in their order, one for each of `battles.models`.

    A tie and two orders that disagree are half a win; weights scale K.
    """
    winners = [
        Winner.X if result == A else Winner.Y if result == B else Winner.Draw
        for result in battles.result.tolist()
    ]
    found = evalica.elo(
        battles.a.tolist(),
        battles.b.tolist(),
        winners,
        weights=battles.weight.tolist(),
        initial=START_POINTS,
        k=K_POINTS,
    )
    by_place = dict(zip(found.scores.index.tolist(), found.scores.tolist(), strict=True))
    return np.array([by_place[place] for place in range(len(battles.models))])
