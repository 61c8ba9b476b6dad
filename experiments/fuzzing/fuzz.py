"""Spoilt files for everything that reads files: what is neither read nor refused by name.

usage: PYTHONPATH=tests python experiments/fuzzing/fuzz.py [--inputs N] [--first N] [READER ...]

READER is a name as `--list` shows it, such as "reader swf". The same inputs come every time.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time

from checks.read_files import ReadFile, read_files
from checks.readers_fuzzed import surprises

_SHOWN = 5


def main() -> int:
    """Print what was found, kind by kind; 1 if there was anything."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("readers", nargs="*", metavar="READER")
    options.add_argument("--inputs", type=int, default=100_000, help="of each (default 100,000)")
    options.add_argument("--first", type=int, default=0, help="number of the first")
    options.add_argument("--list", action="store_true", help="only name the readers")
    given = options.parse_args()
    faulthandler.enable()  # should a library take the whole process down
    kinds = {kind.name: kind for kind in read_files()}
    if given.list:
        print("\n".join(kinds))
        return 0
    if unknown := set(given.readers) - set(kinds):
        options.error(f"no such reader: {', '.join(sorted(unknown))}; see --list")
    chosen = [kinds[name] for name in given.readers or kinds]
    return int(sum(_fuzzed(kind, given.inputs, given.first) for kind in chosen) > 0)


def _fuzzed(kind: ReadFile, inputs: int, first: int) -> int:
    """Number of surprises; the first few are printed."""
    began, found = time.perf_counter(), 0
    print(f"{kind.name}: {inputs} inputs", end="", flush=True)
    for found, surprise in enumerate(surprises(kind, inputs, first), start=1):
        if found <= _SHOWN:
            print(f"\n{surprise}", flush=True)
    print(f", {found} surprises, {time.perf_counter() - began:.0f} s", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
