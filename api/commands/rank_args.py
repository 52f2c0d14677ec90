"""The words of `dikast rank`. Read before any command is chosen, so it knows only argparse."""

import argparse


def add_rank(command: argparse.ArgumentParser) -> None:
    """Every option of `rank`, in groups: what is read, the model, doubt, and what is shown."""
    _add_input(command)
    _add_model(command)
    _add_doubt(command)
    _add_output(command)


def _add_input(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "battles", nargs="+", metavar="OUT", help="outcomes of judge, or rows of battles"
    )
    read = command.add_argument_group("what is read")
    read.add_argument(
        "--use",
        choices=("winner", "label", "votes"),
        default="winner",
        help="verdicts (default), people's labels, or every judge's own votes",
    )
    read.add_argument(
        "--pairs", action="append", default=[], metavar="PAIRS",
        help="the judged pairs, for models, prompts and styles that the outcomes do not tell",
    )  # fmt: skip
    read.add_argument("--format", metavar="F", help="format of the pairs; recognised by default")
    read.add_argument(
        "--columns", metavar="FIELD=COLUMN,...",
        help="which column of the pairs stands for which field",
    )  # fmt: skip
    read.add_argument(
        "--judge", action="append", default=[], metavar="NAME",
        help="only battles before this judge; * stands for anything; may be repeated",
    )  # fmt: skip
    read.add_argument(
        "--cluster", metavar="FIELD", help="field that names the prompt, such as meta.prompt_id"
    )


def _add_model(command: argparse.ArgumentParser) -> None:
    model = command.add_argument_group("the model")
    model.add_argument(
        "--model",
        choices=("bt", "davidson", "rao-kupper"),
        default="bt",
        help="Bradley-Terry (default), or one of its two extensions that model ties",
    )
    model.add_argument(
        "--ties", choices=("half", "drop"), default="half",
        help="under bt a tie is half a win for each (default), or left out",
    )  # fmt: skip
    model.add_argument(
        "--disagreements", choices=("tie", "drop"), default="tie",
        help="two orders that disagree are a tie (default), or left out",
    )  # fmt: skip
    model.add_argument(
        "--ridge", type=float, default=0.01, metavar="X",
        help="penalty on squared strengths in logits; default 0.01, 0 is none",
    )  # fmt: skip
    model.add_argument(
        "--control", choices=("length", "style"),
        help="hold the difference of length, or also of lists, headings, code and bold, at zero",
    )  # fmt: skip
    model.add_argument(
        "--weights", choices=("none", "agreement", "dawid-skene"), default="none",
        help="what judges of unequal reliability count for",
    )  # fmt: skip


def _add_doubt(command: argparse.ArgumentParser) -> None:
    doubt = command.add_argument_group("doubt")
    doubt.add_argument(
        "--interval", choices=("sandwich", "bootstrap"), default="sandwich", help="both by prompt"
    )
    doubt.add_argument("--draws", type=int, default=1000, metavar="N", help="bootstrap resamples")
    doubt.add_argument("--seed", type=int, default=0, metavar="S", help="of the bootstrap")
    doubt.add_argument("--level", type=float, default=0.95, metavar="P", help="default 0.95")


def _add_output(command: argparse.ArgumentParser) -> None:
    shown = command.add_argument_group("what is shown")
    shown.add_argument(
        "--by", metavar="FIELD", help="also a ranking for each judge, or each value of a field"
    )
    shown.add_argument("--matrix", action="store_true", help="also who took how much from whom")
    shown.add_argument("--elo", action="store_true", help="also sequential Elo, to compare")
    shown.add_argument(
        "--next", type=int, metavar="N", dest="next_battles",
        help="also the N battles that would sharpen the ranking most",
    )  # fmt: skip
    shown.add_argument(
        "--against", metavar="REF", help="compare with another ranking: rank --json, or CSV"
    )
    shown.add_argument(
        "--follow", action="store_true", help="keep up with an output that a run is still writing"
    )
    shown.add_argument(
        "--every-s", type=float, default=2.0, metavar="S", help="how often --follow looks"
    )
    shape = shown.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print everything as JSON")
    shape.add_argument("--md", action="store_true", help="print Markdown")
