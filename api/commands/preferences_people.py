"""`dikast preferences show, edit, export, delete, paper`: a profile in the hands of people.

The person a profile describes can see it, change it, take it along and have it deleted. Nothing
here asks a model.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from dikast import status
from dikast.commands.preferences_files import (
    Cell,
    delete_all,
    load_votes,
    store_beside,
    votes_beside,
    write_whole,
)
from dikast.commands.reporting import drawn
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, InputError
from dikast.strategies.preferences import (
    Entry,
    Preference,
    Profile,
    encode_profile,
    load_profile,
    parse_profile,
)
from dikast.tables import Share, Table


async def run(args: argparse.Namespace) -> int:
    """Do what was asked.

    Raises:
        ConfigError: the profile cannot be read, or has no such entry or preference.
        InputError: the votes cannot be read.
        SinkError: a file cannot be written or deleted.
    """
    actions = {
        "show": _show,
        "edit": _edit,
        "export": _export,
        "delete": _delete,
        "paper": _paper,
    }
    return actions[args.action](args)


def _show(args: argparse.Namespace) -> int:
    profile = load_profile(args.profile)
    tables: list[Table] = []
    for entry in profile.entries:
        rows = tuple(
            (each.id, _state(each), each.share if each.votes else 0.0, each.by, each.text)
            for each in entry.preferences
        )
        title = f"{profile.person}, {'topic ' + entry.topic if entry.topic else 'all topics'}"
        notes = [f"judged by: {'the preferences' if entry.use == 'preferences' else 'plain judge'}"]
        notes += [_arm_line(arm) for arm in entry.statistics.get("arms", [])]
        tables.append(
            Table(title, ("id", "state", "weight", "by", "preference"), rows, tuple(notes))
        )
    print(
        f"profile of {profile.person}, version {profile.version} of {profile.made}; judge "
        f"{profile.judge.model}, writer {profile.writer.model}"
    )
    print(drawn(tables), end="")
    return status.OK


def _state(preference: Preference) -> str:
    if preference.deleted:
        return "deleted"
    if preference.pinned:
        return "pinned"
    return "votes" if preference.votes else "not chosen"


def _arm_line(arm: dict[str, Any]) -> str:
    found = arm["accuracy"]
    if found["value"] is None:
        return f"{arm['name']}: no figure"
    between = found["interval"]
    shown = f" [{between['low']:.1%}, {between['high']:.1%}]" if between else ""
    return f"{arm['name']}: {found['value']:.1%}{shown} on {found['pairs']} development pairs"


def _edit(args: argparse.Namespace) -> int:
    profile = load_profile(args.profile)
    entries = {entry.topic: entry for entry in profile.entries}
    if args.topic not in entries:
        known = ", ".join(repr(topic) for topic in entries)
        raise ConfigError(
            f"{args.profile}: there is no entry for the topic {args.topic!r}, only for {known}"
        )
    entry = _edited(entries[args.topic], args)
    if entry == entries[args.topic]:
        raise ConfigError("nothing to change: use --pin, --unpin, --delete, --write or --use")
    fresh = msgspec.structs.replace(
        profile,
        version=profile.version + 1,
        made=SystemClock().stamp(),
        entries=tuple(entry if each.topic == args.topic else each for each in profile.entries),
    )
    data = encode_profile(fresh)
    parse_profile(data, args.profile)
    write_whole(Path(args.profile), data)
    print(f"dikast: {args.profile} is now version {fresh.version}", file=sys.stderr)
    return status.OK


def _edited(entry: Entry, args: argparse.Namespace) -> Entry:
    preferences = {each.id: each for each in entry.preferences}
    for names, change in (
        (args.pin, {"pinned": True, "deleted": False}),
        (args.unpin, {"pinned": False}),
        (args.delete, {"deleted": True, "pinned": False}),
    ):
        for name in names:
            if name not in preferences:
                raise ConfigError(
                    f"{args.profile}: there is no preference {name!r}; there are "
                    f"{', '.join(preferences) or 'none'}"
                )
            preferences[name] = msgspec.structs.replace(preferences[name], **change)
    for text in args.write:
        number = 1
        while f"w{number}" in preferences:
            number += 1
        preferences[f"w{number}"] = Preference(
            id=f"w{number}", text=" ".join(text.split()), by="person", pinned=True
        )
    return msgspec.structs.replace(
        entry, preferences=tuple(preferences.values()), use=args.use or entry.use
    )


def _export(args: argparse.Namespace) -> int:
    path = Path(args.profile)
    profile: Profile = load_profile(args.profile)
    votes = load_votes(votes_beside(path)) if votes_beside(path).exists() else []
    store = store_beside(path)
    everything = {
        "profile": msgspec.to_builtins(profile),
        "votes": msgspec.to_builtins(votes),
        "files": [str(each) for each in (path, votes_beside(path), store) if each.exists()],
    }
    print(msgspec.json.format(msgspec.json.encode(everything), indent=2).decode())
    return status.OK


def _delete(args: argparse.Namespace) -> int:
    load_profile(args.profile)  # nothing is deleted that is no profile
    for path in delete_all(Path(args.profile)):
        print(f"deleted {path}")
    return status.OK


def _paper(args: argparse.Namespace) -> int:
    import numpy as np

    from dikast.analysis.preferences_paper import paper_accuracy, paper_selection

    cells = [each for each in load_votes(Path(args.votes)) if each.topic == args.topic]
    columns = _columns(cells, with_plain=args.with_plain)
    if not cells or not columns:
        raise InputError(f"has no votes for the topic {args.topic!r}", file=args.votes)
    signs = {"A": 1, "B": -1, "none": 0}
    table = {(each.pair, each.column): (signs[each.ab], signs[each.ba]) for each in cells}
    labels = {each.pair: signs[each.label] for each in cells}
    picks = np.array(
        [[table.get((pair, column), (0, 0)) for column in columns] for pair in labels], np.int8
    )
    said = np.array(list(labels.values()), np.int8)
    chosen = paper_selection(picks, said, gap_penalty=args.gap_penalty)
    in_sample, verdicts = paper_accuracy(picks, said, chosen)
    if args.json:
        found = {
            "columns": columns,
            "strategy": chosen.strategy,
            "sets": len(chosen.subsets),
            "best": chosen.best,
            "worst": chosen.worst,
            "verdicts": verdicts,
            "in_sample_percent": in_sample,
        }
        print(msgspec.json.encode(found).decode())
        return status.OK
    rows = ((chosen.strategy, len(columns), len(chosen.subsets), Share(in_sample / 100)),)
    print(
        drawn(
            Table(
                "the authors' selection",
                ("strategy", "preferences", "sets kept", "in-sample accuracy"),
                rows,
                (
                    f"{verdicts} verdicts on the {len(labels)} pairs that the preferences were "
                    "written from: no expectation for other pairs",
                    "level votes go to the answer shown first; a missing verdict counts as wrong",
                ),
            )
        ),
        end="",
    )
    return status.OK


def _columns(cells: list[Cell], *, with_plain: bool) -> list[str]:
    """The candidates in the authors' order: none, one for each pair, all pairs."""
    found = dict.fromkeys(each.column for each in cells)
    own = [each for each in found if each not in ("plain", "one_prompt", "few_shot")]
    return (["plain"] if with_plain and "plain" in found else []) + own
