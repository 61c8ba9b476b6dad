"""STRL as text: expressions as the paper prints them, and files of requests that stand alone.

::

    nodes {m[1-4]}                     # what there is; all nodes that are mentioned, if left out
    busy {m1} until 90s                # running jobs
    slot 10s                           # length of a slot of the plan
    gpu = {m1, m2}
    all = gpu + {m3, m4}
    job1 = max(nCk(gpu, 2, 0, 2h, 4), nCk(all, k=2, s=0, dur=3h, v=3))

Names are defined before they are used. What no other expression uses is a request.
Source: Tumanov et al., TetriSched (EuroSys 2016), section 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeVar

from foresail.model.documents import text_of
from foresail.model.errors import InputError
from foresail.strl import expression as strl
from foresail.strl.tokens import Position, Token, expand, plain_number, seconds, tokens, wrong

_LEAVES: Final[dict[str, Callable[..., strl.Leaf]]] = {
    "nck": strl.NChooseK,
    "lnck": strl.LinearNChooseK,
}
_MANY: Final[dict[str, type[strl.Maximum | strl.Minimum | strl.Sum]]] = {
    "max": strl.Maximum,
    "min": strl.Minimum,
    "sum": strl.Sum,
}
_ONE: Final[dict[str, tuple[Callable[..., strl.Expression], str, str]]] = {
    "scale": (strl.Scale, "factor", "s"),
    "barrier": (strl.Barrier, "value", "v"),
}
_OPERATORS: Final = (*_LEAVES, *_MANY, *_ONE)
_STATEMENTS: Final = ("nodes", "busy", "slot")
RESERVED: Final = frozenset((*_OPERATORS, *_STATEMENTS, "until"))

NAME: Final = re.compile(r"[^\W0-9][\w.-]*")
NAME_FORM: Final = "a word of letters, digits and . _ -"
_ARGUMENTS: Final = ("nodes", "count", "start", "duration", "value")
_SHORT: Final = {
    "k": "count",
    "s": "start",
    "dur": "duration",
    "v": "value",
    **{name: name for name in _ARGUMENTS},
}
_AN_EXPRESSION: Final = "nCk, LnCk, max, min, sum, scale or barrier, or a name defined above"
_A_SET: Final = "a set such as {m1, m2} or {n[1-8]}, or the name of one"

MOST_LEAVES: Final = 1_000_000
"""Expressions with more leaves than this are refused (names make them grow fast)."""
DEEPEST: Final = 100
"""Expressions nested deeper than this are refused."""


Made = TypeVar("Made")


class _LostError(Exception):
    """A statement uses a name whose own definition is wrong; one error is enough."""


class Parser:
    """Reads the tokens of one text, once, from left to right.

    Where sets are given, the text is a request about nodes that are there already: it may use
    and redefine these sets, and says nothing of its own about what there is.
    """

    def __init__(
        self, text: str, source: object | None, known: Mapping[str, frozenset[str]] | None = None
    ) -> None:
        self._tokens = list(tokens(text))
        self._at = 0
        self._brackets: list[Token] = []
        self._source = source
        self._known = known
        self._sets: dict[str, frozenset[str]] = {}
        self._unused_sets: dict[str, Position] = {}
        self._expressions: dict[str, strl.Expression] = {}
        self._used: set[str] = set()
        self._lost: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._leaves = 0
        self._nodes: frozenset[str] | None = None
        self._busy_until: dict[str, float] = {}
        self._slot_seconds: float | None = None
        self._places: list[tuple[strl.Leaf, Mapping[str, Position]]] = []

    # Tokens

    def _wrong(self, problem: str, at: Token, expected: str | None = None) -> InputError:
        return wrong(problem, at, expected, self._source)

    def _peek(self) -> Token:
        """The token that comes next; within brackets a line's end means nothing."""
        while self._brackets and self._tokens[self._at].kind == "newline":
            self._at += 1
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._peek()
        if token.kind == "end" and self._brackets:
            raise self._wrong(f"{self._brackets[-1].text!r} is never closed", self._brackets[-1])
        if token.kind != "end":
            self._at += 1
        return token

    def _take_sign(self, text: str, problem: str, expected: str | None = None) -> Token:
        token = self._take()
        if token.kind != "sign" or token.text != text:
            raise self._wrong(problem, token, expected or repr(text))
        return token

    def _open(self, text: str, problem: str) -> None:
        self._brackets.append(self._take_sign(text, problem))

    def _close(self, text: str, expected: str) -> None:
        self._take_sign(text, "the list does not go on like this", expected)
        self._brackets.pop()

    def _next_is(self, text: str) -> bool:
        return self._peek().kind == "sign" and self._peek().text == text

    def _is_named(self, at: int | None = None) -> bool:
        """Return whether the token at a place, or the next one, has an equals sign behind it."""
        behind = (self._at if at is None else at) + 1
        return behind < len(self._tokens) and self._tokens[behind].text == "="

    def _skip_newlines(self) -> None:
        """Go to the first token that is not the end of a line."""
        while self._peek().kind == "newline":
            self._at += 1

    # Statements

    def reading(self) -> strl.Reading:
        """Read all statements; after an error, go on with the next line."""
        errors = []
        while True:
            self._brackets.clear()
            self._skip_newlines()
            if self._peek().kind == "end":
                break
            first = self._at
            try:
                self._statement()
            except (InputError, _LostError) as problem:
                self._lose(first)
                if isinstance(problem, InputError):
                    errors.append(problem)
        return strl.Reading(self._document(), tuple(errors), tuple(self._places), self._unused_sets)

    def _lose(self, first: int) -> None:
        """Give a statement up: what it would have named is lost, the next one follows."""
        name = self._tokens[first]
        if self._is_named(first):
            self._lost.add(name.text)
        self._at = self._next_line(first)

    def _next_line(self, first: int) -> int:
        """Find where a statement that begins at a token ends: at a line's end out of all brackets.

        Where a bracket is never closed: before the next line that begins with a word.
        """
        depth = 0
        for at in range(first, len(self._tokens)):
            token = self._tokens[at]
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(token.text, 0)
            if token.kind == "newline" and depth <= 0:
                return at
        for at in range(self._at, len(self._tokens)):
            token = self._tokens[at]
            if token.kind == "word" and token.position.column == 1 and at > first:
                return at
        return len(self._tokens) - 1

    def _statement(self) -> None:
        first = self._peek()
        word = first.text.lower() if first.kind == "word" else ""
        if self._is_named():
            self._definition(self._take())
        elif self._known is not None and word in _STATEMENTS:
            raise self._wrong("what there is is known", first, "sets and one expression")
        elif word == "nodes":
            self._take()
            nodes = self._set()
            self._end_statement()
            self._nodes = (self._nodes or frozenset()) | nodes
        elif word == "busy":
            self._take()
            self._busy()
        elif word == "slot":
            self._take()
            self._slot()
        else:
            self._enter(f"\n{len(self._expressions)}", self.expression)

    def _end_statement(self) -> None:
        if self._peek().kind not in ("newline", "end"):
            raise self._wrong("text behind a statement", self._peek(), "a new line")

    def _enter(self, name: str, expression: Callable[[], strl.Expression]) -> None:
        before = self._leaves
        read = expression()
        self._end_statement()
        self._expressions[name] = read
        self._sizes[name] = self._leaves - before

    def _busy(self) -> None:
        nodes = self._set()
        until = self._take()
        if until.text.lower() != "until":
            raise self._wrong("no word of until when", until, "'until' and a time")
        free_again = self._time()
        self._end_statement()
        for node in nodes:
            self._busy_until[node] = max(free_again, self._busy_until.get(node, free_again))

    def _slot(self) -> None:
        at = self._peek()
        slot_seconds = self._time()
        if slot_seconds <= 0.0:
            raise self._wrong("a slot lasts longer than nothing", at, "a time above 0")
        self._end_statement()
        self._slot_seconds = slot_seconds

    def _definition(self, name: Token) -> None:
        self._take()
        if name.text.lower() in RESERVED or not NAME.fullmatch(name.text):
            raise self._wrong("not a name", name, f"{NAME_FORM} that means nothing else")
        if name.text in self._sets or name.text in self._expressions:
            raise self._wrong("the name is defined twice", name, "a name that is not taken")
        right = self._peek()
        if right.text.lower() in _OPERATORS or right.text in self._expressions:
            self._enter(name.text, self.expression)
        elif right.text == "{" or self._is_set(right):
            nodes = self._set()
            self._end_statement()
            self._sets[name.text] = nodes
            self._unused_sets[name.text] = name.position
        else:
            self._refuse_name(right, f"{_A_SET}, or {_AN_EXPRESSION}")

    def _refuse_name(self, token: Token, expected: str) -> NoReturn:
        if token.text in self._lost:
            raise _LostError
        if token.kind == "word" and "-" in token.text:
            expected += " (a minus has spaces around it)"
        problem = "an unknown name" if token.kind == "word" else "something is missing"
        raise self._wrong(problem, token, expected)

    def _document(self) -> strl.Document:
        requests = {name: e for name, e in self._expressions.items() if name not in self._used}
        taken = {*requests, *self._sets}
        free = (name for n in range(1, 10**9) if (name := f"request{n}") not in taken)
        named = {
            next(free) if name.startswith("\n") else name: expression
            for name, expression in requests.items()
        }
        nodes = self._nodes
        if nodes is None:
            asked = (leaf.nodes for e in named.values() for leaf in strl.leaves(e))
            nodes = frozenset(self._busy_until).union(*self._sets.values(), *set(asked))
        supply = strl.Supply(nodes, MappingProxyType(self._busy_until), self._slot_seconds)
        return strl.Document(MappingProxyType(self._sets), MappingProxyType(named), supply)

    # Sets of nodes

    def _set(self) -> frozenset[str]:
        """Sets joined by ``+`` and ``-``, from left to right."""
        found = self._one_set()
        while self._next_is("+") or self._next_is("-"):
            added = self._take().text == "+"
            other = self._one_set()
            found = found | other if added else found - other
        return found

    def _one_set(self) -> frozenset[str]:
        if self._next_is("{"):
            return self._braces()
        name = self._take()
        if not self._is_set(name):
            self._refuse_name(name, _A_SET)
        self._unused_sets.pop(name.text, None)
        if name.text in self._sets:
            return self._sets[name.text]
        return (self._known or {})[name.text]

    def _is_set(self, name: Token) -> bool:
        return name.text in self._sets or name.text in (self._known or {})

    def _braces(self) -> frozenset[str]:
        self._open("{", "no set of nodes")
        found: set[str] = set()
        while not self._next_is("}"):
            if found:
                self._take_sign(",", "the set does not go on like this", "',' or '}'")
            found.update(self._names())
        self._close("}", "'}'")
        return frozenset(found)

    def _names(self) -> Iterable[str]:
        token = self._take()
        if token.kind not in ("word", "number", "quoted"):
            raise self._wrong("not a node", token, 'a name such as m1, n[1-256] or "m 1"')
        if token.kind == "quoted":
            return (token.content,)
        try:
            return expand(token.text)
        except ValueError as error:
            raise self._wrong("not a range of nodes", token, str(error)) from error

    # Numbers

    def _number(self, read: Callable[[Token, object | None], float] = plain_number) -> float:
        sign = -1.0 if self._next_is("-") and self._take() else 1.0
        return sign * read(self._take(), self._source)

    def _time(self) -> float:
        return self._number(seconds)

    def _whole(self) -> int:
        token = self._peek()
        number = self._number()
        if not number.is_integer():
            raise self._wrong("not a whole number", token, "how many nodes")
        return int(number)

    # Expressions

    def expression(self) -> strl.Expression:
        """The expression that comes next."""
        head = self._take()
        if len(self._brackets) > DEEPEST:
            raise self._wrong("nested too deeply", head, f"at most {DEEPEST} levels")
        name = head.text.lower() if head.kind == "word" else ""
        if name in _LEAVES:
            self._count(1, head)
            return self._leaf(name, head)
        if name in _MANY:
            return self._many(name)
        if name in _ONE:
            return self._one(name)
        if head.text not in self._expressions:
            self._refuse_name(head, _AN_EXPRESSION)
        self._used.add(head.text)
        self._count(self._sizes[head.text], head)
        return self._expressions[head.text]

    def _count(self, more: int, at: Token) -> None:
        self._leaves += more
        if self._leaves > MOST_LEAVES:
            raise self._wrong("too much is asked for", at, f"at most {MOST_LEAVES:,} leaves")

    def _many(self, name: str) -> strl.Expression:
        self._open("(", f"{name} needs expressions")
        children = [self.expression()]
        while self._next_is(","):
            self._take()
            children.append(self.expression())
        self._close(")", "',' or ')'")
        return _MANY[name](tuple(children))

    def _one(self, name: str) -> strl.Expression:
        self._open("(", f"{name} needs an expression and a number")
        child = self.expression()
        operator, argument, short = _ONE[name]
        self._take_sign(",", f"{name} needs a {argument}", f"',' and the {argument}")
        if self._peek().text.lower() in (argument, short):
            self._take()
            self._take_sign("=", f"the {argument} is missing")
        at = self._peek()
        number = self._number()
        self._close(")", "')'")
        return self._made(operator, {argument: at}, child, number)

    def _leaf(self, name: str, head: Token) -> strl.Expression:
        self._open("(", f"{head.text} needs nodes, how many, start, duration and value")
        read: tuple[Callable[[], Any], ...]
        read = self._set, self._whole, self._time, self._time, self._number
        readers = dict(zip(_ARGUMENTS, read, strict=True))
        at: dict[str, Token] = {}
        values: dict[str, Any] = {}
        while True:
            argument = self._argument(values)
            at[argument] = self._peek()
            values[argument] = readers[argument]()
            if not self._next_is(","):
                break
            self._take()
        missing = [argument for argument in _ARGUMENTS if argument not in values]
        if missing:
            problem = f"{head.text} is incomplete"
            raise self._wrong(problem, self._peek(), f"',' and the {missing[0]}")
        self._close(")", "')'")
        leaf = self._made(_LEAVES[name], at, *(values[argument] for argument in _ARGUMENTS))
        self._places.append((leaf, {argument: token.position for argument, token in at.items()}))
        return leaf

    def _argument(self, given: Collection[str]) -> str:
        """The leaf's argument that comes next: named (``k=``), or the next in order."""
        token = self._peek()
        if self._is_named():
            named = _SHORT.get(token.text.lower())
            if named is None or named in given:
                problem = "an unknown argument" if named is None else "an argument given twice"
                left = [short for short in _SHORT if _SHORT[short] not in given]
                raise self._wrong(problem, token, " or ".join(left) or "')'")
            self._take()
            self._take()
            return named
        if len(given) == len(_ARGUMENTS):
            raise self._wrong("an argument too many", token, "')'")
        return next(argument for argument in _ARGUMENTS if argument not in given)

    def _made(self, kind: Callable[..., Made], at: Mapping[str, Token], *values: object) -> Made:
        """The expression of this kind; what it refuses is said with its place."""
        try:
            return kind(*values)
        except InputError as error:
            token = at[error.field or ""]
            raise InputError(
                f"a {error.field} that cannot be",
                source=self._source,
                line=token.position.line,
                column=token.position.column,
                value=error.value,
                expected=error.expected,
            ) from error


def parse(text: str, source: object | None = None) -> strl.Document:
    """Return what a file of requests says.

    Raises
    ------
    InputError
        With line and column of the first thing that is wrong, what was found and what expected.
    """
    reading = examine(text, source)
    if reading.errors:
        raise reading.errors[0]
    return reading.document


def read(path: Path) -> strl.Document:
    """Return what the file at this path says.

    Raises ``InputError`` if it cannot be read, or as ``parse`` does.
    """
    return parse(text_of(path), path)


def examine(text: str, source: object | None = None) -> strl.Reading:
    """Read a file of requests, with every statement's first error instead of only one."""
    return Parser(text, source).reading()
