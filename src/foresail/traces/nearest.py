"""What an unknown name was perhaps meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_MOST: Final = 3


def nearest(name: str, known: Iterable[str]) -> str:
    """What to expect instead of an unknown name: the few most similar ones, or all of them.

    Names of which the unknown one is a part are similar, however long they are.
    """
    known = list(known)
    longer = [each for each in known if len(name) > 1 and name.lower() in each.lower()]
    alike = get_close_matches(name, known, n=_MOST, cutoff=0.7)
    near = list(dict.fromkeys((*alike[:1], *longer, *alike)))[:_MOST] or get_close_matches(
        name, known, n=1, cutoff=0.4
    )
    if not near:
        return "one of " + ", ".join(known)
    return " or ".join(map(repr, near)) + ", perhaps"
