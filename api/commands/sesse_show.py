"""`dikast sesse show`: a library for people: where it comes from, its themes, its questions."""

import argparse

import msgspec

from dikast import status
from dikast.commands.reporting import drawn
from dikast.commands.sesse_build import figures
from dikast.extras import see_installed
from dikast.strategies.sesse.library import Cluster, Library, load_library
from dikast.tables import Cell, Measure, Table

_SHORT = 12


async def run(args: argparse.Namespace) -> int:
    """Print it; a damaged library is told in one sentence."""
    see_installed("sesse", "dikast sesse show", "numpy", "scipy")
    library = load_library(args.library)
    if args.json:
        plain = {"hash": library.hash, **msgspec.to_builtins(library)}
        print(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())
        return status.OK
    tables = [origin(library), *figures(library), themes(library)]
    if args.questions:
        tables += [questions_of(cluster) for cluster in library.clusters]
    print(drawn(tables, "md" if args.md else "terminal"), end="")
    return status.OK


def origin(library: Library) -> Table:
    """What decided the library."""
    split, params = library.split, library.params
    sent = {name: value for name, value in library.judge_params.items() if value not in (None, {})}
    rows: list[tuple[Cell, ...]] = [
        ("hash", library.hash),
        ("judge", library.judge),
        ("parameters", ", ".join(f"{name} {value}" for name, value in sent.items()) or "none"),
        ("drafted by", library.builder),
        ("embedder", library.embedder),
        ("rows", f"fingerprint {library.dataset_fingerprint[:_SHORT]}"),
        (
            "split",
            f"{split.mine_rows:,} mined (ids {split.mine_ids_sha[:_SHORT]}), "
            f"{len(split.calibration_ids):,} for calibration, seed {split.seed}"
            + (", stratified" if split.stratified else ""),
        ),
        ("prompts", library.prompts_sha[:_SHORT]),
        ("settings", ", ".join(f"{name} {value}" for name, value in _set(params))),
        ("depth", "not tuned" if library.depth is None else library.depth),
    ]
    if library.parent is not None:
        rows.append(("tuned from", library.parent))
    if library.hybrid_threshold is not None:
        rows.append(("hybrid threshold", library.hybrid_threshold))
    return Table(title="library", columns=("what", "value"), rows=tuple(rows))


def _set(params: msgspec.Struct) -> list[tuple[str, object]]:
    return [(name, getattr(params, name)) for name in params.__struct_fields__]


def themes(library: Library) -> Table:
    """Every cluster in a line."""
    tuned = any(cluster.muted for cluster in library.clusters)
    return Table(
        title="themes",
        columns=("id", "applies when", "questions", "second pick's distance", "merged from")
        + (("muted",) if tuned else ()),
        rows=tuple(
            (
                cluster.cid,
                cluster.label,
                len(cluster.questions),
                cluster.insertion_radius[1] if len(cluster.insertion_radius) > 1 else None,
                ", ".join(cluster.merged_from) or None,
                *((_muted(cluster),) if tuned else ()),
            )
            for cluster in library.clusters
        ),
        notes=(
            f"{library.question_count} questions; each theme's first is its most central, the next "
            "the farthest from it (cosine distance), and so on",
        ),
    )


def _muted(cluster: Cluster) -> str:
    if isinstance(cluster.muted, bool):
        return "everywhere" if cluster.muted else "no"
    return ", ".join(cluster.muted) or "no"


def questions_of(cluster: Cluster) -> Table:
    """The questions of one cluster in the order in which they are asked."""
    radii = [*cluster.insertion_radius, *([None] * len(cluster.questions))]
    return Table(
        title=f"{cluster.cid}: {cluster.label}",
        columns=("#", "if", "which answer is better at", "distance", "weight", "from"),
        rows=tuple(
            (
                str(number),
                question.condition,
                question.conclusion,
                Measure(radius),
                Measure(question.weight, digits=2),
                question.source_subset or question.source_id,
            )
            for number, (question, radius) in enumerate(
                zip(cluster.questions, radii, strict=False), start=1
            )
        ),
    )
