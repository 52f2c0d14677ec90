"""Calls for provider tests, with dikast's fences around the data."""

from dikast.engine.model import Call, Judge, Message, Order, Pair, Params

MARKER_FORM = "Analyse first, then end with [[A]], [[B]] or [[C]]."
JSON_FORM = 'Answer with a JSON object: {"analysis": "...", "verdict": "A"}.'


def prompt_of(pair: Pair, *, form: str = MARKER_FORM, fence: str = "ab12cd34") -> str:
    """A prompt in the shape of the shipped templates; `response_a` is shown first."""
    pieces = {
        "QUESTION": pair.question,
        "ANSWER_A": pair.response_a,
        "ANSWER_B": pair.response_b,
    }
    fenced = "\n".join(
        f"<<<{name} {fence}>>>\n{text}\n<<<END {name} {fence}>>>" for name, text in pieces.items()
    )
    return f"Which answer is better?\n{fenced}\n{form}"


def call_of(
    pair: Pair,
    *,
    order: Order = "ab",
    form: str = MARKER_FORM,
    fence: str = "ab12cd34",
    params: Params | None = None,
    sample: int = 0,
    model: str = "judge-1",
    by_pair: bool = False,
) -> Call:
    """The call that asks about `pair` in the given order."""
    shown = pair if order == "ab" else pair.swapped()
    return Call(
        judge=Judge(
            name="j", provider="p", model=model, params=params or Params(), by_pair=by_pair
        ),
        messages=(
            Message(role="system", content="You compare answers."),
            Message(role="user", content=prompt_of(shown, form=form, fence=fence)),
        ),
        prompt="test@1",
        sample=sample,
        pair_id=pair.id,
        order=order,
    )


def pair_of(number: int, label: str | None = "A") -> Pair:
    """A pair whose texts differ from those of any other number; A is longer than B."""
    return Pair(
        id=f"pair-{number}",
        question=f"What is {number} plus {number}?",
        response_a=f"It is {2 * number}, since {number} + {number} = {2 * number}.",
        response_b=f"It is {2 * number + 1}.",
        label=label,  # type: ignore[arg-type]
    )
