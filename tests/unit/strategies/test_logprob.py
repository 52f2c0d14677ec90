"""Token probabilities of verdicts and grades, by hand-computed cases."""

import math
from typing import Any

import pytest

from dikast.engine.errors import ConfigError
from dikast.engine.model import (
    Completion,
    Judge,
    Pair,
    Params,
    Pick,
    TokenLogprob,
    TopToken,
    Undecided,
    Verdict,
)
from dikast.strategies import Pairwise, PairwiseConfig, build, load_template, swap
from dikast.strategies.logprob import expected_grade, verdict_spread

TEN = [float(each) for each in range(11)]
FIVE = [1.0, 2.0, 3.0, 4.0, 5.0]


def token(text: str, **listed: float) -> TokenLogprob:
    """A token; `listed` are alternatives, with "_" for a leading space."""
    top = tuple(
        TopToken(token=name.replace("_", " ").removeprefix("n"), logprob=math.log(share))
        for name, share in listed.items()
    )
    own = listed.get(text.replace(" ", "_"), listed.get(f"n{text}", 1.0))
    return TokenLogprob(token=text, logprob=math.log(own), top=top)


def completion(*tokens: TokenLogprob) -> Completion:
    return Completion(text="".join(each.token for each in tokens), logprobs=tokens)


LABELS: dict[str, Pick] = {"a": "A", "b": "B", "tie": "tie"}


def test_spellings_of_one_verdict_add_up_and_the_rest_is_left_out() -> None:
    said = completion(
        token("B then "), token('"'), token("A", A=0.4, _A=0.2, B=0.1, _b=0.05, t=0.05, The=0.2)
    )
    spread = verdict_spread(said, len('B then "'), LABELS)
    assert spread is not None
    assert spread.shares == pytest.approx({"A": 0.75, "B": 0.1875, "tie": 0.0625})
    assert spread.listed == pytest.approx(0.8)


def test_a_label_that_begins_another_one_still_means_itself() -> None:
    labels: dict[str, Pick] = {**LABELS, "answer_a": "A", "answer_b": "B"}
    spread = verdict_spread(completion(token("A", A=0.5, B=0.25, ANSWER=0.25)), 0, labels)
    assert spread is not None
    assert spread.shares == pytest.approx({"A": 2 / 3, "B": 1 / 3})


def test_a_place_that_the_tokens_do_not_spell_has_no_spread() -> None:
    said = Completion(text="other A", logprobs=(token("A", A=1.0),))
    assert verdict_spread(said, 6, LABELS) is None
    assert verdict_spread(Completion(text="A"), 0, LABELS) is None


def test_the_expected_grade_is_the_mean_over_the_scale() -> None:
    said = completion(token("s: "), token("4", n4=0.5, _4=0.1, n5=0.2, n3=0.1, x=0.1))
    got = expected_grade(said, 3, FIVE)
    assert got.value == pytest.approx((4 * 0.6 + 5 * 0.2 + 3 * 0.1) / 0.9)
    assert got.listed == pytest.approx(0.9)
    assert got.missing is None


def test_a_digit_in_the_reasoning_is_not_the_grade() -> None:
    said = completion(token("7", n7=0.9, n2=0.1), token(" so "), token("3", n3=0.8, n2=0.2))
    assert expected_grade(said, 5, FIVE).value == pytest.approx(2.8)


def test_ten_as_one_token_leaves_the_one_its_own_meaning() -> None:
    said = completion(token("9", n9=0.5, n10=0.3, n1=0.2))
    assert expected_grade(said, 0, TEN).value == pytest.approx(4.5 + 3.0 + 0.2)


def test_ten_in_two_tokens_is_read_through_the_second() -> None:
    said = completion(token("1", n1=0.8, n9=0.2), token("0", n0=0.75, **{",": 0.25}))
    assert expected_grade(said, 0, TEN).value == pytest.approx(0.8 * (7.5 + 0.25) + 1.8)


def test_a_one_that_might_have_become_ten_gives_no_expected_grade() -> None:
    said = completion(token("9", n9=0.7, n1=0.3), token(","))
    got = expected_grade(said, 0, TEN)
    assert got.value is None
    assert got.missing == "whether a listed '1' would have become '10' is not known"
    assert expected_grade(said, 0, [*FIVE, 6.0, 7.0, 8.0, 9.0]).value == pytest.approx(6.6)


def test_a_one_of_no_weight_does_not_spoil_the_grade() -> None:
    said = completion(token("9", n9=0.995, n1=0.005), token(","))
    assert expected_grade(said, 0, TEN).value == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("said", "start", "grades", "missing"),
    [
        (Completion(text="4"), 0, FIVE, "the provider sent no log probabilities"),
        (Completion(text="4", logprobs=(token("5"),)), 0, FIVE, "do not spell the answer"),
        (completion(token("four", four=1.0)), 0, FIVE, "not written in digits"),
        (completion(token("4", n4=1.0)), 0, [0.0, 0.5, 1.0], "only scales of whole numbers"),
        (completion(token("4", n4=1.0)), 0, [-1.0, 0.0, 1.0], "only scales of whole numbers"),
        (completion(token("4", n4=1.0)), 0, [1.0, 2.0], "no listed token is a grade"),
    ],
)
def test_what_is_missing_is_said(
    said: Completion, start: int, grades: list[float], missing: str
) -> None:
    got = expected_grade(said, start, grades)
    assert got.value is None
    assert missing in (got.missing or "")


# --- a comparison decided by probabilities ------------------------------------------------------

JUDGE = Judge(name="j", provider="p", model="m", params=Params(logprobs=True, top_logprobs=5))
PAIR = Pair(id="p", question="q", response_a="first", response_b="second")


def judge_of(verdict: TokenLogprob | None) -> Any:
    async def ask(call: object) -> Completion:
        before = '{"analysis": "A is fine", "verdict": "'
        if verdict is None:
            return Completion(text=before + 'A"}')
        return completion(token(before), verdict, token('"}'))

    return ask


def leaf(**more: Any) -> Pairwise:
    return Pairwise(JUDGE, load_template("pairwise-en"), **more)


async def test_the_likeliest_verdict_counts_and_the_record_says_so() -> None:
    ask = judge_of(token("A", A=0.3, B=0.25, _B=0.25, tie=0.2))
    outcome = await leaf(order="ab", decide="logprobs").judge(PAIR, ask)
    assert isinstance(outcome, Verdict)
    assert outcome.winner == "B"
    assert outcome.confidence == pytest.approx(0.5)
    (vote,) = outcome.votes
    assert vote.decided_by == "logprobs"
    assert vote.probabilities == pytest.approx({"A": 0.3, "B": 0.5, "tie": 0.2})
    written = await leaf(order="ab").judge(PAIR, ask)
    assert isinstance(written, Verdict)
    assert (written.winner, written.votes[0].decided_by) == ("A", None)


async def test_probabilities_are_told_in_the_terms_of_the_pair() -> None:
    ask = judge_of(token("A", A=0.6, B=0.3, tie=0.1))
    outcome = await leaf(order="ba", decide="logprobs").judge(PAIR, ask)
    assert isinstance(outcome, Verdict)
    assert outcome.winner == "B"
    assert outcome.votes[0].probabilities == pytest.approx({"B": 0.6, "A": 0.3, "tie": 0.1})
    both = await swap(leaf(order="ab", decide="logprobs")).judge(PAIR, ask)
    assert [vote.probabilities["A"] for vote in both.votes] == pytest.approx([0.6, 0.3])


async def test_missing_probabilities_are_undecided_and_never_the_written_verdict() -> None:
    outcome = await leaf(decide="logprobs").judge(PAIR, judge_of(None))
    assert isinstance(outcome, Undecided)
    assert outcome.why == "unparsed"
    assert outcome.detail == "no log probabilities for the token of the verdict"
    assert outcome.votes[0].decided_by is None


async def test_two_verdicts_that_are_equally_likely_are_a_tie() -> None:
    ask = judge_of(token("A", A=0.5, B=0.5))
    outcome = await leaf(decide="logprobs").judge(PAIR, ask)
    assert isinstance(outcome, Verdict)
    assert outcome.winner == "tie"


def test_a_judge_that_asks_for_no_alternatives_is_refused() -> None:
    config = PairwiseConfig(judge="j", decide="logprobs")
    with pytest.raises(ConfigError, match="set top_logprobs"):
        build(config, {"j": Judge(name="j", provider="p", model="m")}, seed=0)
    assert build(config, {"j": JUDGE}, seed=0).spec()["decide"] == "logprobs"
