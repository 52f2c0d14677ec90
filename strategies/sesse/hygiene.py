"""Which drafted questions may enter the library: gates without a judge, each with a name.

Comes right after drafting. A question that names a side, repeats its source, applies always or
asks for "better" would leak the label or decide nothing; each is turned away and counted under
the first gate that it does not pass.
"""

import re
from collections.abc import Iterable, Sequence

from dikast.engine.model import Pair, Record
from dikast.strategies.sesse.library import Question, normal, qid_of
from dikast.strategies.text import narrow

GATES = (
    "not_json",
    "too_many",
    "empty_condition",
    "empty_conclusion",
    "names_a_side",
    "names_the_label",
    "tautology",
    "overall",
    "copies_source",
    "duplicate",
)
"""Why a draft is turned away, in the order in which it is looked at."""

_NOUN = r"(?:response|answer|assistant|output|option|reply|candidate|model)s?"
# A capital A is a name; a small one is an article ("the answer a reader expects") unless what
# follows it shows that it is none.
_SIDE = re.compile(
    rf"\b(?i:{_NOUN})[\s_]*\(?['\"]?(?:A|B|1|2|one|two|b)\b"
    rf"|\b(?i:{_NOUN})[\s_]+['\"(]?a['\")]?"
    r"(?=\s*(?:$|[/,.;:?!)]|(?:or|and) b\b|(?:is|was|has|does)\b))"
    rf"|\b(?i:first|second|former|latter)[\s_]+(?i:{_NOUN})\b"
    rf"|\b(?i:{_NOUN}|verdict|winner|choice)\s*(?:[:=]|\b(?:is|was|(?:should|must|would|will)\s+be)\b)\s*['\"(]*[AB]\b"
    r"(?=['\")]*\s*(?:$|[/,.;:?!]))"
    r"|\[\[(?i:a|b)\]\]"
)
_LABEL = re.compile(
    r"\b(?:the|a)\s+(?:better|chosen|preferred|rejected|worse|winning|losing)\s+(?:\w+\s+)?"
    rf"{_NOUN}\b|\bgold(?:en)?\s+(?:label|answer|verdict)\b|\bthe\s+evaluator"
    r"|\b(?:right|wrong|correct)\s+verdict\b",
    re.IGNORECASE,
)
_ALWAYS = re.compile(
    r"(?:always|in (?:all|any|every) cases?|at all times|any(?: time)?|n/?a|none|true|generally"
    r"|(?:if|when|whenever)?\s*(?:a|an|any|the|two|both|there (?:is|are)(?: an?| two)?)?\s*"
    r"(?:requests?|questions?|prompts?|answers?|responses?)"
    r"(?: (?:is|are|was|were|has been|have been|exists?))?"
    r"(?: (?:given|there|present|provided|made|asked|compared|shown|written))?)",
)
_OVERALL = re.compile(
    r"(?:being |is |the |which (?:answer|response) is )*(?:better|best|good|goodness|superior"
    r"|quality|overall|preferable|correctness of the verdict)"
    r"(?:[ -](?:overall|answer|response|quality|in general|one))*"
    r"|overall (?:quality|better|goodness|merit)"
)
_WORD = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]|[^\\W_]+")


class Draft(Record, frozen=True):
    """One question as it was drafted."""

    condition: str
    conclusion: str


class Rejected(Record, frozen=True):
    """A draft that was turned away; a line of rejected.jsonl."""

    source_id: str
    why: str
    condition: str = ""
    conclusion: str = ""


class Gatekeeper:
    """Lets questions in, each once, and keeps account of the others.

    Args:
        q: the most questions of one source.
        overlap_words: a question with this many words of its source in a row is turned away.
    """

    def __init__(self, *, q: int, overlap_words: int) -> None:
        self._q = q
        self._overlap_words = overlap_words
        self._seen: set[str] = set()
        self.rejected: dict[str, int] = {}

    def admit(
        self, source: Pair, drafts: Sequence[Draft] | None
    ) -> tuple[list[Question], list[Rejected]]:
        """The questions of one source that pass, and the drafts that do not.

        Args:
            source: the misjudged pair.
            drafts: as drafted; None when the answer could not be read.
        """
        if drafts is None:
            return [], [self._reject(source, "not_json", Draft(condition="", conclusion=""))]
        passed: list[Question] = []
        turned_away: list[Rejected] = []
        grams = _grams(_texts_of(source), self._overlap_words)
        for number, draft in enumerate(drafts):
            why = "too_many" if number >= self._q else self._why_not(draft, grams)
            if why:
                turned_away.append(self._reject(source, why, draft))
                continue
            condition, conclusion = _tidy(draft.condition), _tidy(draft.conclusion)
            qid = qid_of(condition, conclusion)
            self._seen.add(qid)
            passed.append(
                Question(
                    qid=qid,
                    condition=condition,
                    conclusion=conclusion,
                    source_id=source.id,
                    source_subset=source.category or "",
                )
            )
        return passed, turned_away

    def _why_not(self, draft: Draft, grams: set[tuple[str, ...]]) -> str:
        condition = normal(_tidy(draft.condition))
        conclusion = normal(_tidy(draft.conclusion))
        both = f"{_tidy(draft.condition)} / {_tidy(draft.conclusion)}"
        if not condition:
            return "empty_condition"
        if not conclusion:
            return "empty_conclusion"
        if _SIDE.search(both):
            return "names_a_side"
        if _LABEL.search(both):
            return "names_the_label"
        if _ALWAYS.fullmatch(condition):
            return "tautology"
        if _OVERALL.fullmatch(conclusion):
            return "overall"
        if grams & _grams((condition, conclusion), self._overlap_words):
            return "copies_source"
        return "duplicate" if qid_of(condition, conclusion) in self._seen else ""

    def _reject(self, source: Pair, why: str, draft: Draft) -> Rejected:
        self.rejected[why] = self.rejected.get(why, 0) + 1
        return Rejected(
            source_id=source.id, why=why, condition=draft.condition, conclusion=draft.conclusion
        )


def _tidy(text: str) -> str:
    """A part of the frame "If ..., which response better satisfies ...", without the frame."""
    one_line = " ".join(text.split())
    return re.sub(r"^(?:if|when|whenever)\s+", "", one_line, flags=re.IGNORECASE).rstrip(" .,;:?")


def _texts_of(pair: Pair) -> Iterable[str]:
    return (
        pair.question,
        *(turn.content for turn in pair.messages),
        pair.response_a,
        pair.response_b,
    )


def _grams(texts: Iterable[str], words: int) -> set[tuple[str, ...]]:
    """Every run of so many words, in any of the texts; a Han character is a word."""
    found: set[tuple[str, ...]] = set()
    for text in texts:
        said: list[str] = _WORD.findall(narrow(text).casefold())
        found.update(tuple(said[at : at + words]) for at in range(len(said) - words + 1))
    return found
