"""The many ways in which people write down pairs and single answers, as one table of fields.

A source reads an object from a file and asks here for its pairs or its item. `detect` recognises
the format by the names of the fields, `map_rows` is a pure function from one object to pairs (most
formats give one; RM-Bench and answer sets give several). Knows nothing of files, lines or judging.

What a format does not use goes into `meta` under its own name. Every field of every format is
listed in docs/formats.md.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import msgspec

from dikast.engine.chat import (
    MisfitError,
    asked,
    in_turns,
    messages_of,
    side_by_side,
    text_of,
    transcript_of,
    unwrapped,
)
from dikast.engine.errors import InputError
from dikast.engine.labels import label_of, winner_of
from dikast.engine.model import BadRow, Item, Message, Pair, Subject

Object = Mapping[str, Any]
Names = tuple[str, ...]

_QUESTION: Final = ("question", "prompt", "instruction", "query", "input")
_REFERENCE: Final = ("reference", "reference_answer", "ground_truth")
_CATEGORY: Final = ("category", "subset", "dataset", "topic", "source")
_ID: Final = ("id", "pair_id", "uid", "uuid", "idx")


@dataclass(frozen=True, slots=True)
class Format:
    """One way of writing a pair or an item: for each thing it needs, the names it may stand under.

    `build` makes pairs out of an object; `needs` lists the groups of names of which one each must
    be there for the format to be recognised; `numbers` allows labels written as 1, 2 and 0.
    """

    name: str
    about: str
    build: "Callable[[Format, Object, str], Sequence[Subject | BadRow]]"
    needs: tuple[Names, ...]
    a: Names = ()
    b: Names = ()
    question: Names = _QUESTION
    context: Names = ()
    model_a: Names = ("model_a",)
    model_b: Names = ("model_b",)
    label: Names = ("label", "winner")
    numbers: bool = False
    id: Names = _ID
    composite_id: Names = ()
    fits: Callable[[Object], bool] = lambda _: True


def map_rows(name: str, obj: Any) -> list[Subject | BadRow]:
    """What `obj` stands for in format `name`, pairs or an item, or the one reason why nothing.

    Raises:
        InputError: there is no format of that name.
    """
    form = format_named(name)
    if not isinstance(obj, dict):
        return [BadRow(message=f"expected an object with named fields, got {type(obj).__name__}")]
    id: str | None = None
    try:
        id = _id_of(form, obj)
        return list(form.build(form, obj, id))
    except MisfitError as misfit:
        return [BadRow(message=misfit.message, id=id, field=misfit.field)]


def detect(objs: Sequence[Any], file: str | None = None) -> str:
    """The name of the format that most of `objs` (the first rows of a file) are written in.

    Raises:
        InputError: none fits; the message lists the fields found and the formats known.
    """
    found: Counter[str] = Counter()
    for obj in objs:
        if isinstance(obj, dict):
            form = next((each for each in FORMATS if _recognised(each, obj)), None)
            if form is not None:
                found[form.name] += 1
    if found:
        return found.most_common(1)[0][0]
    first = next((each for each in objs if isinstance(each, dict)), None)
    keys = ", ".join(sorted(map(str, first))[:20]) if first else "no objects"
    raise InputError(
        f"no known format has these fields: {keys or 'none at all'}; rename them, or force one "
        f"with --format: {', '.join(each.name for each in FORMATS)}",
        file=file,
    )


def format_named(name: str) -> Format:
    """The format of that name. Raises `InputError` with the names there are."""
    for form in FORMATS:
        if form.name == name:
            return form
    raise InputError(
        f"unknown format {name!r}; known are: {', '.join(each.name for each in FORMATS)}"
    )


def _recognised(form: Format, obj: Object) -> bool:
    return all(any(name in obj for name in group) for group in form.needs) and form.fits(obj)


def _first(obj: Object, names: Names) -> tuple[str, Any]:
    """The first of `names` that is there and not null; else the first name, with None."""
    for name in names:
        if (value := obj.get(name)) is not None:
            return name, value
    return (names[0] if names else ""), None


def _id_of(form: Format, obj: Object) -> str:
    """The row's own id, or one made of its content.

    A content hash and not file and line: it stays the same when rows are added, sorted or moved
    to another file, so that a resume finds what it has done. The whole row goes into it, label
    and all: only rows that are the same in every field share an id.
    """
    name, value = _first(obj, form.id)
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is not None and value != "":
        raise MisfitError(name, "an id must be text or a whole number")
    if form.composite_id and obj.get(form.composite_id[0]) is not None:
        return ":".join(str(obj[part]) for part in form.composite_id if obj.get(part) is not None)
    canonical = msgspec.json.encode(obj, order="deterministic", enc_hook=repr)
    return "h:" + hashlib.sha256(canonical).hexdigest()[:24]


# -- shapes -----------------------------------------------------------------------------------

_OWN: Final = frozenset(Pair.__struct_fields__)
_AT_FIELD = re.compile(r" - at `\$\.(\w+)[^`]*`$")
_MISSING = re.compile(r"missing required field `(\w+)`")


def _own(form: Format, obj: Object, id: str) -> list[Pair]:
    """dikast's own rows: checked as they stand, never bent into shape."""
    known: dict[str, Any] = {}
    extras: dict[str, Any] = {}
    for name, value in obj.items():
        if name not in _OWN:
            extras[name] = value
        elif value is not None:
            known[name] = value
    known["id"] = id
    if extras:
        given = known.get("meta", {})
        known["meta"] = {**extras, **given} if isinstance(given, dict) else given
    if known.get("label") is not None:
        known["label"] = winner_of("label", known["label"], numbers=False)
    if "category" not in known and isinstance(extras.get("subset"), str):
        known["category"] = extras["subset"]
    try:
        pair = msgspec.convert(known, Pair)
    except msgspec.ValidationError as error:
        raise _named_misfit(str(error)) from error
    if not pair.question and not pair.messages:
        raise MisfitError("question", "is missing: give a question or messages")
    return [pair]


def _named_misfit(text: str) -> MisfitError:
    place = _AT_FIELD.search(text)
    if place is None and (missing := _MISSING.search(text)):
        return MisfitError(missing[1], "is missing")
    what = _AT_FIELD.sub("", text).replace("`", "")
    return MisfitError(place[1] if place else "row", what[:1].lower() + what[1:])


def _two_answers(form: Format, obj: Object, id: str) -> list[Pair]:
    """A question with two answers, each a text, a list of turns, or a message list."""
    name_a, raw_a = _first(obj, form.a)
    name_b, raw_b = _first(obj, form.b)
    sides = messages_of(raw_a, name_a), messages_of(raw_b, name_b)
    if sides[0] and sides[1] and len(sides[0]) > 1:
        question, messages, a, b = side_by_side(sides[0], sides[1], (name_a, name_b))
    else:
        question, messages = _question(form, obj)
        a, b = _answer(raw_a, name_a), _answer(raw_b, name_b)
    return [_pair(form, obj, id, question, messages, a, b)]


def _answer(raw: Any, name: str) -> str:
    raw = unwrapped(raw)
    if isinstance(raw, list) and raw and all(isinstance(each, str) for each in raw):
        return in_turns(raw)
    return text_of(raw, name)


def _question(form: Format, obj: Object) -> tuple[str, tuple[Message, ...]]:
    name, raw = _first(obj, form.question)
    raw = unwrapped(raw)
    messages = messages_of(raw, name)
    if messages is not None:
        return asked(messages)
    if isinstance(raw, list) and raw and all(isinstance(each, str) for each in raw):
        return in_turns(raw), ()
    text = text_of(raw, name)
    for extra in form.context:
        if extra != name and isinstance(obj.get(extra), str) and obj[extra].strip():
            text = f"{text}\n\n{obj[extra]}"
    return text, ()


def _conversations(form: Format, obj: Object, id: str) -> list[Pair]:
    """Arena style: two whole conversations; MT-Bench rows say which turn was judged."""
    (name_a, raw_a), (name_b, raw_b) = _first(obj, form.a), _first(obj, form.b)
    a, b = messages_of(raw_a, name_a), messages_of(raw_b, name_b)
    if a is None or b is None:
        raise MisfitError(name_a if a is None else name_b, "expected a list of chat messages")
    turn = obj.get("turn")
    if isinstance(turn, int) and turn > 0:
        a, b = a[: 2 * turn], b[: 2 * turn]
    question, messages, text_a, text_b = side_by_side(a, b, (name_a, name_b))
    return [_pair(form, obj, id, question, messages, text_a, text_b)]


def _preference(form: Format, obj: Object, id: str) -> list[Pair]:
    """A chosen and a rejected answer: which is shown as A is a hash of the id."""
    (name_c, chosen), (name_r, rejected) = _first(obj, form.a), _first(obj, form.b)
    sides = _said(chosen, name_c), _said(rejected, name_r)
    if sides[0] and sides[1] and (len(sides[0]) > 1 or _first(obj, form.question)[1] is None):
        question, messages, good, bad = side_by_side(sides[0], sides[1], (name_c, name_r))
    else:
        question, messages = _question(form, obj)
        good, bad = _answer(chosen, name_c), _answer(rejected, name_r)
    return [_placed(form, obj, id, question, messages, good, bad)]


def _said(value: Any, name: str) -> tuple[Message, ...] | None:
    if isinstance(value, str):
        return transcript_of(value)
    return messages_of(value, name)


def _styles(form: Format, obj: Object, id: str) -> list[Pair]:
    """RM-Bench: the same content in several styles on both sides, every style against every."""
    question, messages = _question(form, obj)
    chosen, rejected = obj.get("chosen"), obj.get("rejected")
    if not isinstance(chosen, list) or not isinstance(rejected, list):
        raise MisfitError("chosen", "expected lists of texts in chosen and rejected")
    pairs = []
    for i, good in enumerate(chosen):
        for j, bad in enumerate(rejected):
            pair = _placed(
                form, obj, f"{id}:{i}-{j}", question, messages,
                text_of(good, "chosen"), text_of(bad, "rejected"),
            )  # fmt: skip
            level = "hard" if i < j else "easy" if i > j else "normal"
            of = {"difficulty": level, "row": id}
            pairs.append(msgspec.structs.replace(pair, meta={**pair.meta, **of}))
    return pairs


def _answer_set(form: Format, obj: Object, id: str) -> list[Pair | BadRow]:
    """One question with the answers of many models: every two of them, in order of name."""
    question, messages = _question(form, obj)
    answers = obj.get("answers")
    if not isinstance(answers, dict) or len(answers) < 2:
        raise MisfitError("answers", "expected an object with the answers of two models or more")
    texts: dict[str, str] = {}
    rows: list[Pair | BadRow] = []
    for model in sorted(answers):
        try:
            texts[model] = _answer(answers[model], f"answers.{model}")
        except MisfitError as misfit:  # costs the pairs of this model, not those of the others
            rows.append(BadRow(message=misfit.message, id=f"{id}:{model}", field=misfit.field))
    for model_a, model_b in combinations(texts, 2):
        of_turns = "mt:" if isinstance(answers[model_a], list) else ""
        pair = _pair(
            form, obj, f"{id}:{of_turns}{model_a}:{model_b}", question, messages,
            texts[model_a], texts[model_b],
        )  # fmt: skip
        rows.append(msgspec.structs.replace(pair, model_a=model_a, model_b=model_b))
    return rows


def _single(form: Format, obj: Object, id: str) -> list[Item]:
    """One answer by itself: to be scored, not compared."""
    name, raw = _first(obj, form.a)
    question, messages = _question(form, obj)
    if not question and not messages:
        raise MisfitError(_first(obj, form.question)[0], "is empty: give a question or messages")
    points = obj.get("key_points") or ()
    if not isinstance(points, list | tuple) or not all(isinstance(each, str) for each in points):
        raise MisfitError("key_points", "expected a list of texts")
    grade_name, grade = _first(obj, form.label)
    if grade is not None and (isinstance(grade, bool) or not isinstance(grade, int | float)):
        raise MisfitError(grade_name, "expected a number")
    category = _first(obj, _CATEGORY)[1]
    reference = _first(obj, _REFERENCE)[1]
    rest = _rest(form, obj)
    rest.pop("key_points", None)
    return [
        Item(
            id=id,
            question=question,
            messages=messages,
            response=_answer(raw, name),
            reference=reference if isinstance(reference, str) and reference else None,
            key_points=tuple(points),
            category=category if isinstance(category, str) else None,
            model=_name(obj, form.model_a),
            grade=None if grade is None else float(grade),
            meta=rest,
        )
    ]


def _placed(
    form: Format,
    obj: Object,
    id: str,
    question: str,
    messages: tuple[Message, ...],
    good: str,
    bad: str,
) -> Pair:
    """The pair with the better answer on the side that the id decides, so order tells nothing."""
    pair = _pair(form, obj, id, question, messages, good, bad)
    pair = msgspec.structs.replace(pair, label="A")
    data = id.encode("utf-8", "surrogatepass")
    return pair.swapped() if hashlib.sha256(b"side:" + data).digest()[0] & 1 else pair


def _pair(
    form: Format,
    obj: Object,
    id: str,
    question: str,
    messages: tuple[Message, ...],
    a: str,
    b: str,
) -> Pair:
    category = _first(obj, _CATEGORY)[1]
    reference = _first(obj, _REFERENCE)[1]
    return Pair(
        id=id,
        question=question,
        messages=messages,
        response_a=a,
        response_b=b,
        model_a=_name(obj, form.model_a),
        model_b=_name(obj, form.model_b),
        label=label_of(obj, form.label, numbers=form.numbers),
        category=category if isinstance(category, str) else None,
        reference=reference if isinstance(reference, str) and reference else None,
        meta=_rest(form, obj),
    )


def _name(obj: Object, names: Names) -> str | None:
    value = _first(obj, names)[1]
    return value if isinstance(value, str) and value else None


def _rest(form: Format, obj: Object) -> dict[str, Any]:
    used = {
        *form.question, *form.context, *form.a, *form.b, *form.model_a, *form.model_b,
        *form.label, *form.id, "reference", "category", "answers",
        "winner_model_a", "winner_model_b", "winner_tie",
    }  # fmt: skip
    given = obj.get("meta")
    rest = {name: value for name, value in obj.items() if name not in used and name != "meta"}
    return {**rest, **given} if isinstance(given, dict) else rest


def _lists_of_texts(obj: Object) -> bool:
    return all(
        isinstance(obj[name], list) and all(isinstance(each, str) for each in obj[name])
        for name in ("chosen", "rejected")
    )


def _one_answer(obj: Object) -> bool:
    """No second answer beside it: half a pair is a mistake and not an item."""
    return not any(name in obj for name in (*_ANSWERS_A, *_ANSWERS_B, "chosen", "rejected"))


# -- the table: the most particular first -----------------------------------------------------

_ANSWERS_A: Final = (
    *("answer_a", "response_a", "output_a", "completion_a", "text_a", "answer_A", "response_A"),
    *("answer_1", "response_1", "output_1", "completion_1", "answer1", "response1", "output1"),
)
_ANSWERS_B: Final = tuple(
    name.replace("_a", "_b").replace("_A", "_B").replace("1", "2") for name in _ANSWERS_A
)
_NAMED_A: Final = ("model_a", "generator_a", "generator_1", "model_1", "model1", "response_model_a")
_NAMED_B: Final = ("model_b", "generator_b", "generator_2", "model_2", "model2", "response_model_b")
_SINGLE: Final = ("response", "answer", "output", "completion", "prediction")
_RESPONSES: Final = (("response_a",), ("response_b",))
_OUTPUTS: Final = (("output_1",), ("output_2",))

FORMATS: Final[tuple[Format, ...]] = (
    Format(
        "arena", "Arena battles: prompt, response_a, response_b, winner in one column each",
        _two_answers, ((("prompt",), *_RESPONSES, ("winner_model_a",))),
        a=("response_a",), b=("response_b",), label=("winner",),
    ),
    Format(
        "dikast", "dikast's own: question or messages, response_a, response_b",
        _own, (*_RESPONSES, ("question", "messages")),
    ),
    Format(
        "mtbench", "MT-Bench and Arena: conversation_a, conversation_b, winner",
        _conversations, (("conversation_a",), ("conversation_b",)),
        a=("conversation_a",), b=("conversation_b",), label=("winner", "label"),
        composite_id=("question_id", "model_a", "model_b", "turn", "judge"),
    ),
    Format(
        "judgebench", 'JudgeBench: question, response_A, response_B, label "A>B"',
        _two_answers, (("question",), ("response_A",), ("response_B",)),
        a=("response_A",), b=("response_B",),
        model_a=("response_model",), model_b=("response_model",),
    ),
    Format(
        "pandalm", "PandaLM: instruction, input, response1, response2, annotator1 to 3",
        _two_answers, (("instruction",), ("response1",), ("response2",)),
        a=("response1",), b=("response2",), question=("instruction",), context=("input",),
        label=(), numbers=True,
    ),
    Format(
        "alpacaeval", "AlpacaEval: instruction, output_1, output_2, generator_1, preference",
        _two_answers, (("instruction",), *_OUTPUTS),
        a=("output_1",), b=("output_2",), question=("instruction",), context=("input",),
        model_a=("generator_1",), model_b=("generator_2",),
        label=("preference", "label"), numbers=True,
    ),
    Format(
        "llmbar", "LLMBar: input, output_1, output_2, label 1 or 2",
        _two_answers, (("input",), *_OUTPUTS),
        a=("output_1",), b=("output_2",), question=("input",), numbers=True,
    ),
    Format(
        "rmbench", "RM-Bench: prompt, chosen and rejected as lists of styles; gives every pairing",
        _styles, (("chosen",), ("rejected",)), label=(), fits=_lists_of_texts,
        a=("chosen",), b=("rejected",),
    ),
    Format(
        "chosen", "RewardBench, UltraFeedback, HH, SenseJudge: prompt, chosen, rejected",
        _preference, (("chosen",), ("rejected",)), label=(),
        a=("chosen",), b=("rejected",),
        model_a=("chosen_model", "chosen-model"), model_b=("rejected_model", "rejected-model"),
    ),
    Format(
        "models", "answer sets: question and answers by model; gives every two of them",
        _answer_set, (("answers",), (*_QUESTION, "turns")),
        question=(*_QUESTION, "turns"), label=(), model_a=(), model_b=(),
    ),
    Format(
        "answers", "any question with answer_a and answer_b under their usual names",
        _two_answers, (_QUESTION, _ANSWERS_A, _ANSWERS_B),
        a=_ANSWERS_A, b=_ANSWERS_B, context=("input",), model_a=_NAMED_A, model_b=_NAMED_B,
        label=("label", "winner", "preference"), numbers=True,
    ),
    Format(
        "item", "single answers, for --strategy score: question or messages, and response",
        _single, ((*_QUESTION, "messages"), _SINGLE),
        a=_SINGLE, question=(*_QUESTION, "messages"), model_a=("model", "generator"), model_b=(),
        label=("grade", "human_score", "rating"), fits=_one_answer,
    ),
)  # fmt: skip
