"""A file of requests: named node sets, the requests themselves, and what there is to give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foresail.model.errors import InputError
from foresail.strl.expression import Expression, Leaf, Sum
from foresail.strl.supply import Supply
from foresail.strl.tokens import Position


@dataclass(frozen=True, slots=True)
class Document:
    """What a file of requests says."""

    node_sets: Mapping[str, frozenset[str]]
    """Named sets of nodes, in the file's order."""
    requests: Mapping[str, Expression]
    """Expressions that no other one is made of, by name, in the file's order; those without a name
    are called ``request1``, ``request2``, ..."""
    supply: Supply
    """The nodes there are, and until when some are busy."""

    @property
    def expression(self) -> Expression:
        """All requests as one expression: the only one, or the sum of all.

        Raises
        ------
        InputError
            If there is no request.
        """
        if not self.requests:
            raise InputError("nothing is asked for", expected="at least one expression")
        each = tuple(self.requests.values())
        return each[0] if len(each) == 1 else Sum(each)


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of reading a text: what it says, and all that is wrong with it."""

    document: Document
    """What the lines without an error say."""
    errors: tuple[InputError, ...]
    """One for each statement that could not be understood, in order."""
    places: tuple[tuple[Leaf, Mapping[str, Position]], ...]
    """Every leaf as it was written, with the place of each of its arguments."""
    unused_sets: Mapping[str, Position]
    """Where the named sets that nothing uses are defined."""
