"""What an unknown name was perhaps meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """What to expect instead of an unknown name: the most similar one, or all of them."""
    known = list(known)
    near = get_close_matches(name, known, n=1, cutoff=0.4)
    return f"{near[0]!r}, perhaps" if near else "one of " + ", ".join(known)
