"""Counts of what a reader of the source has to hold, each with its budget in ``budget.toml``.

``PYTHONPATH=tests python tests/architecture/house.py`` prints them, and with the name of a count
what it counts.
"""

from __future__ import annotations

import ast
import dataclasses
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

from architecture import floors
from foresail.model import registry

SMALL_LINES = 80
"""A module of fewer lines is part of another, unless it is a plug-in or opens a package."""
LONE_LINES = 140
"""A module of fewer lines whose one importer stands beside it is part of that one."""
MOST_IMPORTS = 15
"""Modules of the house that a file may import."""
KERNEL_LINES = 25
"""A compiled function of more lines says in a comment what it does."""

_OPENING = re.compile(
    r"(What|How|Whether|Of|As|Who|Whom|Whose|Where|When|Why|Which|That|It|They|Those|These|Something"
    r"|Nothing)\b"
)
_DENIED = re.compile(
    r"\b(told|tells|went back|goes back to the queue|overtook|passed over|held up)\b"
    r"|\b(in vain|on trial|paper 00\d|spec\s+section|spec \d)",
    re.IGNORECASE,
)
_KERNEL = re.compile(r"(merged_)?part\b|bare_kernel|(bare_)?step\(")
_PLUG_IN_CALL = re.compile(r"^@register\(", re.MULTILINE)
_SET = re.compile(r"\b(\w+) ?= ?[\w\"'.\[{-]")


@cache
def trees() -> dict[Path, ast.Module]:
    """Syntax trees of the source, by file."""
    return {path: ast.parse(text) for path, text in texts().items()}


@cache
def texts() -> dict[Path, str]:
    """Text of every file of the source."""
    return {path: path.read_text("utf-8") for path in floors.SOURCE.rglob("*.py")}


_KEPT = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Call)


@cache
def _nodes() -> tuple[tuple[Path, ast.AST], ...]:
    """Modules, classes, functions and calls of the source, each with its file."""
    return tuple(
        (path, node)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, _KEPT)
    )


def _where(path: Path, name: str) -> str:
    return f"{path.relative_to(floors.SOURCE)}: {name}"


def public_names() -> Iterator[str]:
    """Functions and classes at the top of modules that others may import."""
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
            ) and not node.name.startswith("_"):
                yield _where(path, node.name)


def protocols() -> Iterator[str]:
    """Classes that say which methods others have."""
    for path, node in _nodes():
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
            if "Protocol" in bases:
                yield _where(path, node.name)


def command_options() -> Iterator[str]:
    """Options of commands, each once where it is written: in a call, or in a docstring."""
    for path, node in _nodes():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func) == "typer.Option"
        ):
            words = [each.value for each in node.args if isinstance(each, ast.Constant)]
            yield _where(path, " ".join(map(str, words)) or f"line {node.lineno}")
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            _, _, options = (ast.get_docstring(node) or "").partition("\nOptions:\n")
            leading = node.args.posonlyargs if isinstance(node, ast.FunctionDef) else ()
            arguments = {each.arg for each in leading}
            for line in options.splitlines():
                if (option := re.match(r"    (\w+)", line)) and option[1] not in arguments:
                    yield _where(path, option[1])


@cache
def _plug_in_parameters() -> tuple[tuple[str, str, Path], ...]:
    """Plug-in parameters: record that declares it, field, and the file, each once.

    They are those of what the registry has, wherever its records stand and whatever they inherit.
    """
    found: set[tuple[str, str, Path]] = set()
    for entry in chain.from_iterable(map(registry.entries, registry.FAMILIES)):
        if not entry.build.__module__.startswith(f"{floors.SOURCE.name}."):
            continue
        for field in dataclasses.fields(entry.parameters):
            declares = [
                each
                for each in entry.parameters.__mro__
                if field.name in vars(each).get("__annotations__", {})
            ]
            path = Path(sys.modules[declares[-1].__module__].__file__ or "")
            found.add((declares[-1].__name__, field.name, path))
    return tuple(sorted(found))


def plug_in_parameters() -> Iterator[str]:
    """Parameters that a user may give to plug-ins."""
    for record, field, path in _plug_in_parameters():
        yield _where(path, f"{record}.{field}")


@cache
def _set_words() -> frozenset[str]:
    """Words that pages for users, named policies, studies and what judges the product set."""
    root = floors.ROOT
    places = [
        *(root / "docs").rglob("*.md"),
        *(root / "studies").rglob("*.py"),
        *(root / "studies").rglob("*.toml"),
        *(root / "experiments").rglob("*.py"),
        *(root / "benchmarks").rglob("*.py"),
        root / "README.md",
        root / "Makefile",
        *(floors.SOURCE / "campaigns").glob("*.py"),
        floors.SOURCE / "control" / "policy.py",
        *floors.SOURCE.rglob("*.toml"),
    ]
    return frozenset(word for place in places for word in _SET.findall(place.read_text("utf-8")))


def parameters_set_nowhere() -> Iterator[str]:
    """Parameters of plug-ins that no named policy, study or page for users sets."""
    for record, field, path in _plug_in_parameters():
        if field not in _set_words():
            yield _where(path, f"{record}.{field}")


def _module_of(path: Path) -> str:
    parts = path.relative_to(floors.SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _imports() -> dict[str, set[str]]:
    """Modules of the house that each module imports, inside functions too."""
    names = {_module_of(path) for path in trees()}
    found: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees().items():
        for name in floors.imported_names(tree):
            for each in (name, name.rpartition(".")[0]):
                if each in names:
                    found[_module_of(path)].add(each)
                    break
    return found


@cache
def _is_loose(path: Path) -> bool:
    """Whether a module could be part of another: no package's opening, plug-in or command."""
    is_command = path.parent.name in {"cli", "cloud"} and "cli" in path.parts
    return not (
        path.name in {"__init__.py", "__main__.py"}
        or (is_command and not path.name.startswith("_"))
        or _PLUG_IN_CALL.search(texts()[path])
    )


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def small_modules() -> Iterator[str]:
    """Modules of fewer lines than are worth a file."""
    for path in trees():
        if _is_loose(path) and _lines(path) < SMALL_LINES:
            yield _where(path, f"{_lines(path)} lines")


def lone_modules() -> Iterator[str]:
    """Short modules that one module of their own folder imports, and no other."""
    importers: dict[str, set[str]] = defaultdict(set)
    for module, imported in _imports().items():
        for each in imported:
            importers[each].add(module)
    for path in trees():
        module = _module_of(path)
        if not _is_loose(path) or not SMALL_LINES <= _lines(path) < LONE_LINES:
            continue
        if len(importers[module]) == 1:
            (importer,) = importers[module]
            if importer.rpartition(".")[0] == module.rpartition(".")[0]:
                yield _where(path, f"{_lines(path)} lines, for {importer} alone")


def crowded_modules() -> Iterator[str]:
    """Modules that import more of the house than a reader can hold."""
    for path in trees():
        count = len(_imports()[_module_of(path)])
        if count > MOST_IMPORTS:
            yield _where(path, f"{count} modules")


def _docstrings(node: ast.AST) -> Iterator[str]:
    """Docstrings of a module, class or function, and of the names that a body assigns."""
    if isinstance(node, ast.Call):
        return
    yield ast.get_docstring(node, clean=False) or ""  # type: ignore[arg-type]
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    for assigned, text in pairwise(body):
        if (
            isinstance(assigned, ast.Assign | ast.AnnAssign)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            yield text.value.value


def docstring_openings() -> Iterator[str]:
    """Docstrings that open with neither a verb nor a noun, those of fields and constants too."""
    for path, node in _nodes():
        for text in filter(_OPENING.match, _docstrings(node)):
            yield _where(path, text.partition("\n")[0])


def _texts_in(source: str) -> Iterator[tuple[int, str]]:
    """Texts and comments, whole and with single blanks however they are broken, by first line."""
    kind, line, parts = 0, 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NL:
            continue
        if token.type != kind:
            if parts:
                yield line, " ".join(" ".join(parts).split())
            kind, line, parts = token.type, token.start[0], []
        if kind == tokenize.STRING:
            parts.append(token.string.lstrip("rbfuRBFU").strip("\"'"))
        elif kind == tokenize.COMMENT:
            parts.append(token.string.lstrip("# "))


def denied_words() -> Iterator[str]:
    """Private words in comments and texts where the field has its own; methods called ``of``."""
    for path, text in texts().items():
        for line, joined in _texts_in(text):
            for found in _DENIED.finditer(joined):
                said = joined[max(0, found.start() - 40) : found.end() + 30]
                yield _where(path, f"{line}: {said}")
    for path, node in _nodes():
        if isinstance(node, ast.FunctionDef) and node.name in {"of", "_of"}:
            yield _where(path, f"{node.lineno}: def {node.name}")


def silent_kernels() -> Iterator[str]:
    """Long compiled functions without a comment."""
    for path, tree in trees().items():
        lines = texts()[path].split("\n")
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef) or node.end_lineno is None:
                continue
            if not any(_KERNEL.match(ast.unparse(each)) for each in node.decorator_list):
                continue
            body = lines[node.lineno - 1 : node.end_lineno]
            if len(body) > KERNEL_LINES and not any(re.search(r"(^|\s)# ", line) for line in body):
                yield _where(path, node.name)


COUNTS = {
    each.__name__: each
    for each in (
        public_names,
        protocols,
        command_options,
        plug_in_parameters,
        parameters_set_nowhere,
        small_modules,
        lone_modules,
        crowded_modules,
        docstring_openings,
        denied_words,
        silent_kernels,
    )
}
"""All counts by the name that ``budget.toml`` has for them."""


def main() -> None:
    """Print every count, or what one of them counts."""
    if sys.argv[1:]:
        lines = sorted(COUNTS[sys.argv[1]]())
    else:
        lines = [f"{name} = {sum(1 for _ in count())}" for name, count in COUNTS.items()]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
