"""Order expressions: text such as ``predicted * cpus`` becomes a program for the kernel.

Fields are those of a job's specification (``submit``, ``cpus``, ``requested``), of its prediction
(``predicted``, ``q10``, ``q25``, ``q50``, ``q75``, ``q90``, ``urgency``), ``wait``, ``now``, and
``probe``: how many waiting jobs of the same user and request would be better known once this one
has run (1 if any of them runs already, or an older one waits).
Operators are ``+ - * / **``, comparisons ``<  <=  >  >=``, ``a if condition else b`` and the
functions ``min max log exp sqrt abs``.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.kernels import expression as machine
from foresail.kernels.columns import CPUS, REQUESTED, SUBMIT, SUMMARY_NAMES
from foresail.kernels.compile import unlocked_kernel
from foresail.kernels.expression import OrderProgram, evaluate
from foresail.model.distribution import Floats
from foresail.model.errors import InputError, UnknownNameError, require
from foresail.model.registry import todays_name

NAMED_ORDERS: Mapping[str, str] = MappingProxyType(
    {
        "fcfs": "submit",
        "shortest": "predicted",
        "longest": "-predicted",
        "narrowest": "cpus",
        "widest": "-cpus",
        "smallest_area": "predicted * cpus",
        "largest_area": "-predicted * cpus",
        "slowdown": "predicted * cpus / urgency",
    }
)
"""Orders by name, as expressions: smaller values go first."""

_FIELDS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "submit": (machine.SPEC, SUBMIT),
        "cpus": (machine.SPEC, CPUS),
        "requested": (machine.SPEC, REQUESTED),
        **{name: (machine.SUMMARY, column) for column, name in enumerate(SUMMARY_NAMES)},
        "now": (machine.NOW, 0),
        "wait": (machine.WAIT, 0),
        "probe": (machine.PILOT, 0),
    }
)
FIELD_NAMES = tuple(_FIELDS)
_BINARY = {
    ast.Add: machine.ADD,
    ast.Sub: machine.SUBTRACT,
    ast.Mult: machine.MULTIPLY,
    ast.Div: machine.DIVIDE,
    ast.Pow: machine.POWER,
}
_OF_VALUES: Mapping[object, Callable[..., Any]] = MappingProxyType(
    {
        ast.Add: np.add,
        ast.Sub: np.subtract,
        ast.Mult: np.multiply,
        ast.Div: np.divide,
        ast.Pow: np.power,
        ast.Lt: np.less,
        ast.LtE: np.less_equal,
        ast.Gt: np.greater,
        ast.GtE: np.greater_equal,
        "log": lambda value: np.log(np.maximum(value, 0.0)),
        "exp": np.exp,
        "sqrt": np.sqrt,
        "abs": np.abs,
        "min": np.fmin,
        "max": np.fmax,
    }
)
"""Results of operators and functions on arrays, as the kernel has them of numbers."""

_FUNCTIONS = {
    "log": (machine.LOGARITHM, 1),
    "exp": (machine.EXPONENTIAL, 1),
    "sqrt": (machine.SQUARE_ROOT, 1),
    "abs": (machine.ABSOLUTE, 1),
    "min": (machine.MINIMUM, 2),
    "max": (machine.MAXIMUM, 2),
}
_JOBS_TRIED, _LARGEST_POWER = 64, 8.0
_EXPECTED = "an order's name or an expression over job fields, such as predicted * cpus"


@lru_cache(maxsize=256)
def compile_expression(text: str) -> OrderProgram:
    """Compile an order's name or an expression.

    Raises ``InputError`` if the text is not such an expression, or no number for any of some jobs
    of all sizes; ``UnknownNameError`` if it names a field or function that does not exist.
    """
    text = NAMED_ORDERS.get(text, text)
    compiler = _Compiler(text)
    try:
        tree = ast.parse(text, mode="eval").body
        compiler.visit(tree, depth=1)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise InputError("not an expression", value=text, expected=_EXPECTED) from error
    tried = _values(tree, _some_jobs())
    if tried is not None and not np.isfinite(tried).any():
        raise _no_number(f"{ast.unparse(tree)!r} is no number for any job", text)
    return OrderProgram(
        code=np.array(compiler.code, dtype=np.float64),
        changes_with_time=compiler.changes_with_time,
        follows_probes=compiler.follows_probes,
    )


@lru_cache
def _some_jobs() -> Mapping[str, Floats]:
    """Jobs of all sizes to try expressions with: fields, each of shape (jobs,); at first ones."""
    powers = np.random.default_rng(0).uniform(0.0, _LARGEST_POWER, (len(_FIELDS), _JOBS_TRIED))
    powers[:, 0] = 0.0
    jobs = dict(zip(_FIELDS, np.round(10.0**powers), strict=True))
    jobs["now"] = jobs["submit"] + jobs["wait"]
    jobs["urgency"] /= jobs["predicted"]
    return jobs


def _values(node: ast.expr, jobs: Mapping[str, Floats]) -> Floats | None:
    """Return what an expression comes to for jobs; None where a field is not known."""
    operation: Callable[..., Any]
    match node:
        case ast.Constant(value=number):
            return np.array(number, dtype=np.float64)
        case ast.Name(id=name):
            return jobs.get(todays_name("order", name))
        case ast.UnaryOp(operand=operand):
            operation, operands = np.negative, [operand]
        case ast.BinOp(left=left, op=op, right=right):
            operation, operands = _OF_VALUES[type(op)], [left, right]
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            operation, operands = _OF_VALUES[type(op)], [left, right]
        case ast.Call(func=ast.Name(id=name), args=operands):
            operation = _OF_VALUES[name]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            operation, operands = np.where, [test, body, orelse]
        case _:
            return None
    values = [value for value in (_values(each, jobs) for each in operands) if value is not None]
    if len(values) < len(operands):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(operation(*values), dtype=np.float64)


def _no_number(sentence: str, text: str) -> InputError:
    return InputError(sentence, field="order", value=text, expected=_EXPECTED)


class _Compiler:
    """Walks a syntax tree and writes instructions in postfix order."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.code: list[float] = []
        self.changes_with_time = False
        self.follows_probes = False

    def visit(self, node: ast.expr, depth: int) -> None:
        if depth > machine.STACK_DEPTH - 2:
            raise InputError("expression is nested too deeply", value=self.text)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            self._emit(machine.CONSTANT, float(node.value))
        elif isinstance(node, ast.Name):
            self._field(node.id)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            self.visit(node.operand, depth)
            self._emit(machine.NEGATE)
        elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            self._operands(node.left, node.right, depth)
            self._refuse_no_number(node)
            self._emit(_BINARY[type(node.op)])
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            self._comparison(node.left, node.ops[0], node.comparators[0], depth)
        elif isinstance(node, ast.IfExp):
            self.visit(node.test, depth)
            self._operands(node.body, node.orelse, depth + 1)
            self._emit(machine.CHOOSE)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            self._call(node.func.id, node, depth)
        else:
            raise self._refused(ast.unparse(node))

    def _refuse_no_number(self, node: ast.BinOp | ast.Call) -> None:
        """Refuse what is no number, whatever the job."""
        value = _values(node, {})
        by_zero = (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Div)
            and _values(node.right, {}) == 0.0
        )
        if by_zero or (value is not None and not np.isfinite(value)):
            raise _no_number(f"{ast.unparse(node)!r} is no number", self.text)

    def _emit(self, code: int, operand: float = 0.0) -> None:
        self.code += [code, operand]

    def _operands(self, left: ast.expr, right: ast.expr, depth: int) -> None:
        self.visit(left, depth)
        self.visit(right, depth + 1)

    def _field(self, name: str) -> None:
        name = todays_name("order", name)
        if name not in _FIELDS:
            raise UnknownNameError("order or job field", name, {**_FIELDS, **NAMED_ORDERS})
        self.changes_with_time |= name in ("now", "wait")
        self.follows_probes |= name == "probe"
        self._emit(*_FIELDS[name])

    def _comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr, depth: int) -> None:
        if isinstance(operator, ast.Gt | ast.GtE):
            left, right = right, left
        elif not isinstance(operator, ast.Lt | ast.LtE):
            raise self._refused(ast.unparse(ast.Compare(left, [operator], [right])))
        self._operands(left, right, depth)
        strict = isinstance(operator, ast.Lt | ast.Gt)
        self._emit(machine.LESS if strict else machine.LESS_EQUAL)

    def _call(self, name: str, node: ast.Call, depth: int) -> None:
        if name not in _FUNCTIONS:
            raise UnknownNameError("function", name, _FUNCTIONS)
        code, arity = _FUNCTIONS[name]
        if len(node.args) != arity or node.keywords:
            raise InputError(
                f"{name} takes {arity} argument{'s' if arity > 1 else ''}", value=self.text
            )
        for offset, argument in enumerate(node.args):
            self.visit(argument, depth + offset)
        self._refuse_no_number(node)
        self._emit(code)

    def _refused(self, part: str) -> InputError:
        return InputError(f"cannot use {part!r}", value=self.text, expected=_EXPECTED)


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a scheduler, as names or expressions, and its guard against starvation."""

    queue: str = "fcfs"
    candidates: str | None = None
    plan: str = "predicted"
    age_limit_seconds: float = math.inf

    def __post_init__(self) -> None:
        program = compile_expression(self.plan)
        if program.changes_with_time or program.follows_probes:
            raise InputError(
                "a runtime does not depend on the moment",
                field="plan",
                value=self.plan,
                expected="an expression without now, wait and probe",
            )
        require(self.age_limit_seconds > 0, self, "age_limit_seconds", "seconds above 0")


@unlocked_kernel
def fill_places(
    code: NDArray[np.float64],
    stack: NDArray[np.float64],
    specs: NDArray[np.float64],
    summaries: NDArray[np.float64],
    now: float,
    places: NDArray[np.float64],
) -> None:
    """Evaluate for jobs, a row each, as if each informed nobody else; ``stack`` is scratch."""
    for job in range(places.size):
        places[job] = evaluate(code, stack, specs[job], summaries[job], now, 1.0)
