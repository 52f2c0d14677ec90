"""Elo: the sequential rating, for comparison. It depends on the order of the battles.

Computed by evalica. Source: Elo 1978, The Rating of Chessplayers; K and start as in Chatbot Arena.
"""

import evalica
from evalica import Winner

from dikast.analysis.ranking.battles import A, B, Battles

START_POINTS = 1000.0
K_POINTS = 4.0


def elo(battles: Battles) -> dict[str, float]:
    """Elo ratings by model after all battles in their order.

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
    places: list[int] = found.scores.index.tolist()
    ratings: list[float] = found.scores.tolist()
    return {battles.models[place]: rating for place, rating in zip(places, ratings, strict=True)}
