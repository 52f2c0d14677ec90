"""The recipes of the page about scaling out, cut down to a test's size and nothing else changed."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "scale-out.md"
PRINTED_SHARDS = 64


def recipe(name: str) -> str:
    """The block that stands under the comment `recipe: NAME`, as it is printed."""
    text = PAGE.read_text("utf-8")
    found = re.search(rf"<!-- recipe: {re.escape(name)} -->\n```\w+\n(.*?)```", text, re.DOTALL)
    assert found is not None, f"{PAGE} prints no {name}"
    return found[1]


def sized(text: str, shared: Path, shards: int) -> str:
    """A recipe with a folder in the place of /shared and fewer shards."""
    text = text.replace("/shared", str(shared))
    text = text.replace(f"--shards {PRINTED_SHARDS}", f"--shards {shards}")
    return text.replace(f"--array=0-{PRINTED_SHARDS - 1}\n", f"--array=0-{shards - 1}\n")


def write_recipes(folder: Path, shards: int, *names: str) -> None:
    """Write recipes into `folder`, which is their /shared."""
    for name in names:
        (folder / name).write_text(sized(recipe(name), folder, shards))
