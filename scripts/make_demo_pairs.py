"""Writes `api/data/demo_pairs.jsonl`; with `--check` only says whether it would change."""

import argparse
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.demo_pairs import dates, handwritten, listing, numeric, translation
from scripts.demo_pairs.core import build_rows

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "api" / "data" / "demo_pairs.jsonl"
SEED = 20240501


def render() -> bytes:
    """The whole file, the same bytes on every run."""
    rng = random.Random(SEED)
    items = [
        *numeric.make_items(rng),
        *dates.make_items(rng),
        *listing.make_items(rng),
        *translation.make_items(rng),
        *handwritten.read_items(),
    ]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in build_rows(items, rng)]
    return "".join(lines).encode("utf-8")


def main() -> int:
    """0 when written or as it should be, 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if it differs")
    wanted = render()
    if parser.parse_args().check:
        same = OUTPUT.is_file() and OUTPUT.read_bytes() == wanted
        print(f"{OUTPUT.name}: {'as generated' if same else 'differs from what the script makes'}")
        return 0 if same else 1
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_bytes(wanted)
    print(f"{OUTPUT.name}: {wanted.count(10)} rows")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
