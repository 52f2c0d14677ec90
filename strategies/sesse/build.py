"""Stages 0 to 4 in a row: labelled pairs and a judge go in, a library comes out.

Runs beside the journey of a pair, through the same gateway: every call meets the same store,
budget, pacing and retries, and a build that was killed asks only what is missing. The result
follows from the rows, the judge's words, the vectors and the seed; the order of the input, of
arrival and the number of workers change nothing.

Source of the stages: Lee, Delgeanu and Youssef, SESSE (arXiv 2608.18303), section 3; what the paper
leaves open is decided in docs/decisions.
"""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from dikast.engine.errors import (
    InputError,
    ProviderError,
)
from dikast.engine.model import Judge, Pair, Usage
from dikast.engine.ports import Embedder
from dikast.strategies.pairwise import judge_spec
from dikast.strategies.sesse.bills import Bill, BilledAsk, Built, OnProgress, nobody
from dikast.strategies.sesse.cluster import Vectors, k_means, silhouette, silhouette_table, unit
from dikast.strategies.sesse.embedding import embedded
from dikast.strategies.sesse.formulas import Sizes, clusters_wanted
from dikast.strategies.sesse.holistic import Holistic, Judged
from dikast.strategies.sesse.hygiene import GATES, Draft, Gatekeeper
from dikast.strategies.sesse.library import BuildParams, Cluster, Library, Question, Split, normal
from dikast.strategies.sesse.merge import Asked, Candidate, Equivalence, candidates, merge_groups
from dikast.strategies.sesse.order import Ordered, farthest_first
from dikast.strategies.sesse.prompts import prompts_sha
from dikast.strategies.sesse.sketch import Sketch
from dikast.strategies.sesse.stages import Answered, Failure, StageStop, in_order
from dikast.strategies.sesse.summarise import Summariser
from dikast.strategies.sesse.workdir import Workdir

T = TypeVar("T")
R = TypeVar("R")


class _Theme(NamedTuple):
    """A cluster on the way: places of its questions, their order, and its label."""

    cid: str
    members: list[int]
    order: Ordered
    label: str = ""
    merged_from: tuple[str, ...] = ()


class _TooManyFailedError(Exception):
    """Ends a build after the stage in which calls failed."""


class LibraryBuilder:
    """Builds one library; use it once.

    Args:
        judge: whose errors are mined.
        drafter: who drafts, summarises and compares; usually the judge.
        embedder: makes the vectors.
        params: what decides the library.
        asker: makes the `Ask` of a stage.
        workdir: where the artefacts go.
        workers: calls at the same time.
        stop: ends the build after what is in the air.
        on_progress: looks on.
        failures_max: calls that may fail for good before a build ends without a library.
    """

    def __init__(
        self,
        judge: Judge,
        drafter: Judge,
        embedder: Embedder,
        params: BuildParams,
        *,
        asker: Callable[[], BilledAsk],
        workdir: Workdir,
        workers: int = 64,
        stop: StageStop | None = None,
        on_progress: OnProgress = nobody,
        failures_max: int = 0,
    ) -> None:
        self._judge = judge
        self._drafter = drafter
        self._embedder = embedder
        self._params = params
        self._asker = asker
        self._workdir = workdir
        self._workers = workers
        self._stop = stop
        self._on_progress = on_progress
        self._failures_max = failures_max
        self._bills: list[Bill] = []
        self._failures: list[Failure] = []
        self._simulated = False
        self._embedded = 0
        self._failed_here = 0
        self._stats: dict[str, Any] = {}

    async def run(self, rows: Sequence[Pair], *, split: Split, fingerprint: str) -> Built:
        """Mine the rows.

        Args:
            rows: labelled A or B, each id once.
            split: how they were chosen.
            fingerprint: of the whole input.

        Raises:
            InputError: there is nothing to mine: no error, or no question that passed.
            ConfigError: the embedder does not take the texts.
            RunStopped: the run was stopped, or the embedder does not answer; the same build resumes
                from the store.
        """
        try:
            library = await self._run(rows, split, fingerprint)
        except _TooManyFailedError:
            library = None
        built = Built(
            library=library,
            bills=tuple(self._bills),
            failures=tuple(self._failures),
            stage=self._bills[-1].stage,
            embedded=self._embedded,
        )
        self._workdir.table("bills.json", self._bills)
        return built

    async def _run(self, rows: Sequence[Pair], split: Split, fingerprint: str) -> Library:
        params = self._params
        by_id = {pair.id: pair for pair in rows}
        errors = await self._collect(sorted(rows, key=lambda pair: pair.id))
        if not errors:
            raise InputError(
                f"the judge {self._judge.name} made no readable error on {len(rows)} rows, "
                "so there is nothing to mine; give harder or more rows, or another judge"
            )
        questions = await self._draft(errors, by_id)
        if not questions:
            raise InputError(
                f"none of the questions drafted from {len(errors)} errors passed the gates; see "
                "rejected.jsonl in the work folder"
            )
        vectors = await self._embed([question.text for question in questions])
        themes = self._cluster(questions, vectors)
        themes = await self._label(themes, questions, "summarise")
        themes, asked = await self._merge(themes, questions, vectors)
        sizes = Sizes(
            rows=len(rows),
            errors=len(errors),
            questions=len(questions),
            clusters=self._stats["k"],
            candidates=len(asked),
            merged=self._stats["merged"],
        )
        self._stats["calls"] = {bill.stage: bill.expected + bill.retried for bill in self._bills}
        self._stats["formula"] = sizes.calls()
        return Library(
            judge=self._judge.model,
            judge_params=judge_spec(self._judge)["params"],
            builder=self._drafter.model,
            embedder=self._embedder.name,
            dataset_fingerprint=fingerprint,
            prompts_sha=prompts_sha(),
            params=params,
            split=split,
            clusters=tuple(_finished(theme, questions, vectors) for theme in themes),
            stats=self._stats,
            simulated=self._simulated,
        )

    # --- stage 0 and 1 --------------------------------------------------------------------------

    async def _collect(self, rows: Sequence[Pair]) -> list[Judged]:
        holistic = Holistic(self._judge, seed=self._params.seed)
        ask = self._asker()
        counts: dict[str, int] = dict.fromkeys(("correct", "wrong", "invalid"), 0)
        errors: list[Judged] = []
        retried = 0
        with (
            self._workdir.rows("holistic.jsonl") as write,
            self._workdir.rows("errors.jsonl") as keep,
        ):

            async def one(pair: Pair) -> Judged:
                return await holistic.judge(pair, ask)

            async for judged in self._each(rows, one, "holistic", ask, lambda pair: pair.id):
                invalid = judged.verdict == "INVALID"
                name = "invalid" if invalid else "correct" if judged.correct else "wrong"
                counts[name] += 1
                retried += judged.calls - 1
                write(msgspec.structs.replace(judged, analysis=""))
                if judged.mined:
                    errors.append(judged)
                    keep(judged)
        self._settle("holistic", len(rows), retried, ask)
        judged_rows = sum(counts.values())
        self._stats |= {
            "rows": len(rows),
            "judged": judged_rows,
            **counts,
            "accuracy": round(counts["correct"] / judged_rows, 6) if judged_rows else 0.0,
        }
        return errors

    async def _draft(self, errors: Sequence[Judged], by_id: dict[str, Pair]) -> list[Question]:
        params = self._params
        sketch = Sketch(self._drafter, q=params.q, seed=params.seed)
        gate = Gatekeeper(q=params.q, overlap_words=params.overlap_words)
        ask = self._asker()
        questions: list[Question] = []
        drafted = retried = 0

        async def one(judged: Judged) -> tuple[str, Answered[list[Draft]]]:
            return judged.id, await sketch.draft(by_id[judged.id], judged, ask)

        with (
            self._workdir.rows("questions.jsonl") as keep,
            self._workdir.rows("rejected.jsonl") as reject,
        ):
            async for source_id, answered in self._each(
                errors, one, "draft", ask, lambda judged: judged.id
            ):
                retried += answered.calls - 1
                drafted += len(answered.value or ())
                passed, turned_away = gate.admit(by_id[source_id], answered.value)
                questions += passed
                for question in passed:
                    keep(question)
                for rejected in turned_away:
                    reject(rejected)
        self._settle("draft", len(errors), retried, ask)
        self._stats |= {
            "errors": len(errors),
            "drafted": drafted,
            "questions": len(questions),
            "rejected": {why: gate.rejected[why] for why in GATES if why in gate.rejected},
        }
        return sorted(questions, key=lambda question: question.qid)

    # --- stage 2 and 3 --------------------------------------------------------------------------

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        self._embedded += len(set(texts))
        return unit(await embedded(self._embedder, texts))

    def _cluster(self, questions: Sequence[Question], vectors: Vectors) -> list[_Theme]:
        params = self._params
        k = clusters_wanted(len(questions), params.k)
        fit = k_means(vectors, k, seed=params.seed, n_init=params.n_init)
        table = silhouette_table(vectors, seed=params.seed, n_init=params.n_init)
        members: dict[int, list[int]] = {}
        for place, label in enumerate(fit.labels.tolist()):
            members.setdefault(label, []).append(place)
        # The largest first; questions are sorted by id, so that the smallest id settles the rest.
        groups = sorted(members.values(), key=lambda places: (-len(places), places[0]))
        self._stats |= {
            "k": len(groups),
            "silhouette": round(silhouette(vectors, fit.labels), 6),
            "silhouette_by_k": {str(each): round(value, 6) for each, value in table.items()},
            "silhouette_best_k": max(table, key=lambda each: table[each]) if table else None,
        }
        self._on_progress("cluster", len(groups), len(groups), None)
        return [
            _Theme(f"c{number:02d}", places, self._order(places, questions, vectors))
            for number, places in enumerate(groups, start=1)
        ]

    def _order(
        self, places: Sequence[int], questions: Sequence[Question], vectors: Vectors
    ) -> Ordered:
        found = farthest_first(
            vectors[list(places)],
            [questions[place].qid for place in places],
            n_max=self._params.n_max,
            trim_pct=self._params.trim_pct,
        )
        return Ordered([places[at] for at in found.places], found.radii)

    # --- stage 4 --------------------------------------------------------------------------------

    async def _label(
        self, themes: Sequence[_Theme], questions: Sequence[Question], stage: str
    ) -> list[_Theme]:
        writer = Summariser(self._drafter, seed=self._params.seed)
        ask = self._asker()
        named: list[_Theme] = []
        retried = unread = 0

        async def one(theme: _Theme) -> tuple[_Theme, Answered[str]]:
            asked = [questions[place] for place in theme.order.places]
            return theme, await writer.label(theme.cid, asked, ask)

        async for theme, answered in self._each(themes, one, stage, ask, lambda theme: theme.cid):
            retried += answered.calls - 1
            unread += answered.value is None
            # The medoid comes first in the order.
            label = answered.value or questions[theme.order.places[0]].condition
            named.append(theme._replace(label=label))
        self._settle(stage, len(themes), retried, ask)
        self._stats["labels_unread"] = self._stats.get("labels_unread", 0) + unread
        self._workdir.table(
            "clusters.json" if stage == "summarise" else "merged.json",
            [_shown(theme, questions) for theme in named],
        )
        return named

    async def _merge(
        self, themes: list[_Theme], questions: Sequence[Question], vectors: Vectors
    ) -> tuple[list[_Theme], list[Asked]]:
        params = self._params
        themes = self._alike(themes, questions, vectors)
        found: list[Candidate] = []
        if len(themes) > 1:
            labels = await self._embed([theme.label for theme in themes])
            found = candidates([theme.cid for theme in themes], labels, params.merge_quantile)
        asked = await self._ask_equivalence(themes, found)
        by_cid = {theme.cid: theme for theme in themes}
        groups = merge_groups(asked, cap=params.merge_cap)
        pooled = [
            self._pooled([by_cid[cid] for cid in group], questions, vectors) for group in groups
        ]
        pooled = await self._label(pooled, questions, "resummarise")
        gone = {cid for group in groups for cid in group}
        left = [theme for theme in themes if theme.cid not in gone]
        self._stats |= {
            "candidates": len(found),
            "equivalent": sum(each.same for each in asked),
            "merged": len(groups),
            "k_after": len(left) + len(pooled),
        }
        return sorted(left + pooled, key=lambda theme: theme.cid), asked

    def _alike(
        self, themes: Sequence[_Theme], questions: Sequence[Question], vectors: Vectors
    ) -> list[_Theme]:
        """Themes with the very same label are one: no judge could tell them apart by it."""
        by_label: dict[str, list[_Theme]] = {}
        for theme in themes:
            by_label.setdefault(normal(theme.label), []).append(theme)
        self._stats["same_label"] = len(themes) - len(by_label)
        return [
            group[0]
            if len(group) == 1
            else self._pooled(group, questions, vectors)._replace(label=group[0].label)
            for group in by_label.values()
        ]

    async def _ask_equivalence(
        self, themes: Sequence[_Theme], found: Sequence[Candidate]
    ) -> list[Asked]:
        params = self._params
        judge = Equivalence(self._drafter, seed=params.seed)
        ask = self._asker()
        label_of = {theme.cid: theme.label for theme in themes}
        asked: list[Asked] = []

        async def one(each: Candidate) -> Asked:
            first, second = label_of[each.first], label_of[each.second]
            name = f"clusters {each.first} {each.second}"
            forward = await judge.ask(first, second, name, ask)
            backward = await judge.ask(second, first, name, ask)
            return Asked(
                first=each.first,
                second=each.second,
                cosine=each.cosine,
                forward=forward.value or forward.why,
                backward=backward.value or backward.why,
                calls=forward.calls + backward.calls,
            )

        with self._workdir.rows("merges.jsonl") as write:
            async for each in self._each(
                found, one, "equivalence", ask, lambda each: f"{each.first}+{each.second}"
            ):
                asked.append(each)
                write(each)
        retried = sum(each.calls - 2 for each in asked)
        self._settle("equivalence", 2 * len(found), retried, ask)
        return asked

    def _pooled(
        self, group: Sequence[_Theme], questions: Sequence[Question], vectors: Vectors
    ) -> _Theme:
        """Themes thrown together: stage 3 again over all their questions."""
        members = sorted(place for theme in group for place in theme.members)
        return _Theme(
            cid=group[0].cid,
            members=members,
            order=self._order(members, questions, vectors),
            merged_from=tuple(
                sorted(cid for theme in group for cid in theme.merged_from or (theme.cid,))
            ),
        )

    # --- what every stage does ------------------------------------------------------------------

    async def _each(
        self,
        items: Sequence[T],
        work: Callable[[T], Awaitable[R]],
        stage: str,
        ask: BilledAsk,
        name: Callable[[T], str],
    ) -> AsyncGenerator[R, None]:
        """Results in order; a call that failed for good is kept as a failure and left out."""
        done = 0
        failed = len(self._failures)
        self._on_progress(stage, 0, len(items), ask)

        async def guarded(item: T) -> R | Failure:
            nonlocal done
            try:
                return await work(item)
            except ProviderError as error:
                return Failure(id=name(item), kind=error.kind, message=error.message)
            finally:
                done += 1
                self._on_progress(stage, done, len(items), ask)

        results = in_order(items, guarded, workers=self._workers, stop=self._stop)
        async with contextlib.aclosing(results):
            async for result in results:
                if isinstance(result, Failure):
                    self._failures.append(result)
                else:
                    yield result
        self._failed_here = len(self._failures) - failed

    def _settle(self, stage: str, expected: int, retried: int, ask: BilledAsk) -> None:
        """Book a stage; end the build where too much of it failed."""
        self._simulated = self._simulated or ask.simulated
        self._bills.append(
            Bill(
                stage=stage,
                expected=expected,
                asked=ask.calls,
                retried=retried,
                stored=ask.stored_calls,
                failed=self._failed_here,
                cost_usd=ask.cost_usd,
                usage=ask.usage or Usage(),
            )
        )
        if len(self._failures) > self._failures_max:
            raise _TooManyFailedError


def _finished(theme: _Theme, questions: Sequence[Question], vectors: Vectors) -> Cluster:
    centroid = unit(vectors[theme.members].mean(axis=0, keepdims=True))[0]
    return Cluster(
        cid=theme.cid,
        label=theme.label,
        questions=tuple(questions[place] for place in theme.order.places),
        insertion_radius=tuple(theme.order.radii),
        centroid=tuple(round(float(value), 6) for value in centroid),
        merged_from=theme.merged_from,
    )


def _shown(theme: _Theme, questions: Sequence[Question]) -> dict[str, Any]:
    """A theme as people read it in the artefacts."""
    return {
        "cid": theme.cid,
        "label": theme.label,
        "size": len(theme.members),
        "merged_from": theme.merged_from,
        "insertion_radius": theme.order.radii,
        "questions": [questions[place].text for place in theme.order.places],
    }
