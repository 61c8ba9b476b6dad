"""The one table of plug-ins. A plug-in is one file in a package of its family, found by name.

One that takes more is a folder there with a file named for the family (``local/cluster.py``). A
file registers what it defines with ``@register(family, name, parameters=Record)``. Who asks for one
name gets it without importing the others: the names that a file registers are read in its text.
Another distribution names packages of its own in the entry point group ``foresail.FAMILY``, or
modules to import in ``foresail.plugins``; single files come in through ``load_plugin``.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cache, partial
from importlib.machinery import FileFinder
from pathlib import Path
from traceback import walk_tb
from types import FrameType, MappingProxyType
from typing import Any, Final, TypeVar, get_type_hints

from foresail.model.errors import ForesailError, InputError, UnknownNameError

PUBLISHED: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "scheduler": {"prio": "priority", "guarded": "guarded_backfilling"},
        "waiting policy": {
            "ajw": "all-jobs-wait",
            "njw": "no-jobs-wait",
            "ajw-t": "all-jobs-wait-threshold",
            "sww": "short-waits-wait",
            "ljw": "long-jobs-wait",
        },
    }
)
"""Long name by published short name, by the kind of word."""

DEPRECATED: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "scheduler": {"three_sigma": "3sigma"},
        "task_scheduler": {"fifo_tasks": "task_fifo"},
        "--conventions": {"foresail": "standard"},
        "order": {"pilot": "probe"},
    }
)
"""New word by old word, by the kind of word."""


class DeprecatedWordWarning(FutureWarning):
    """A word was typed that the next version does not know."""


def todays_name(kind: str, word: str) -> str:
    """The name that a word of this kind has now; a deprecated one is warned of."""
    new = DEPRECATED.get(kind, {}).get(word)
    if new is not None:
        warnings.warn(f"{kind} {word} is now called {new}", DeprecatedWordWarning, stacklevel=2)
        return new
    return PUBLISHED.get(kind, {}).get(word, word)


def with_short_name(kind: str, name: str) -> str:
    """A name as lists show it: with the short one of publications, if it has one."""
    short = [each for each, long in PUBLISHED.get(kind, {}).items() if long == name]
    return f"{name} ({short[0]})" if short else name


FAMILIES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "scheduler": ("foresail.schedulers",),
        "task_scheduler": ("foresail.schedulers.of_tasks",),
        "predictor": ("foresail.predictors",),
        "correction": ("foresail.corrections",),
        "reader": ("foresail.traces.readers",),
        "filter": ("foresail.traces.filters",),
        "generator": (),
        "analysis": ("foresail.analysis.studies", "foresail.evaluation.analyses"),
        "solver": ("foresail.milp",),
        "price_source": ("foresail.cloud.sources",),
        "study": (),
        "cluster": ("foresail.live.adapters",),
        "execution": (),
    }
)
"""The packages of this distribution in which the plug-ins of a family are found."""

ELSEWHERE: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {("cluster", "slurm"): "foresail-slurm", ("cluster", "kubernetes"): "foresail-kubernetes"}
)
"""Distributions that bring plug-ins, by family and name: said where they are not installed."""


_PLUGIN_PREFIX: Final = "foresail_plugin_"
"""Opens the name of a module that is a file of the user's."""

Build = TypeVar("Build", bound=Callable[[Any], Any])


@dataclass(frozen=True, slots=True)
class NoParameters:
    """The record of a plug-in that has nothing to set."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One registered plug-in.

    ``build`` makes an instance from a ``parameters`` record (a frozen dataclass whose fields all
    have defaults or are required of the user).
    """

    family: str
    name: str
    build: Callable[[Any], Any]
    parameters: type

    @property
    def summary(self) -> str:
        """First line of the plug-in's docstring."""
        return (self.build.__doc__ or "").strip().partition("\n")[0]

    @property
    def is_built_in(self) -> bool:
        """Return whether any process finds it: it comes from no file of the user's."""
        return not self.build.__module__.startswith(_PLUGIN_PREFIX)


_ENTRIES: dict[tuple[str, str], Entry] = {}
_PLUGINS: dict[Path, str] = {}
_BROUGHT: set[str] = set()
"""Outermost names of the modules from outside the house that bring plug-ins."""


def register(family: str, name: str, parameters: type = NoParameters) -> Callable[[Build], Build]:
    """Class (or function) decorator that enters a plug-in under a name of its family.

    Raises ``ValueError`` if the family does not exist or the name is taken by something else.
    """
    if family not in FAMILIES:
        raise ValueError(f"no family {family!r}; families: {', '.join(FAMILIES)}")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name: letters, digits, '_', '-', '.' and '+' make one")
    if name in {**PUBLISHED.get(family, {}), **DEPRECATED.get(family, {})}:
        raise ValueError(f"there is a {family} {name!r} already")

    def enter(build: Build) -> Build:
        known = _ENTRIES.get((family, name))
        if known is not None and known.build.__module__ != build.__module__:
            raise ValueError(f"{family} {name!r} is already registered by {known.build.__module__}")
        _ENTRIES[family, name] = Entry(family, name, build, parameters)
        return build

    return enter


_NAME: Final = re.compile(r"[\w.+-]+")
_REGISTRATION: Final = re.compile(r"^@register\(\s*\"\w+\",\s*(\"[^\"]+\"|\w+)", re.MULTILINE)
_CONSTANT: Final = re.compile(r"^(\w+)[^=\n]*= (\"[^\"]+\")$", re.MULTILINE)


@cache
def installed_packages(family: str) -> tuple[str, ...]:
    """Packages of other distributions in which the plug-ins of a family are found.

    Not those of which nothing but the metadata is there.
    """
    from importlib.metadata import entry_points  # imported here: the help is shown sooner

    named = sorted(each.value for each in entry_points(group=f"foresail.{family}"))
    return tuple(each for each in named if importlib.util.find_spec(each.partition(".")[0]))


@cache
def _modules(family: str, packages: tuple[str, ...]) -> Mapping[str, Path]:
    """Files of a family in some packages by the dotted name of their module."""
    import pkgutil

    found = {}
    for name in packages:
        _import(name)
        for module in pkgutil.iter_modules(sys.modules[name].__path__):
            if not isinstance(module.module_finder, FileFinder) or module.name.startswith("_"):
                continue
            inside = f"{module.name}.{family}" if module.ispkg else module.name
            path = Path(module.module_finder.path, *inside.split(".")).with_suffix(".py")
            if path.is_file() or not module.ispkg:
                found[f"{name}.{inside}"] = path
    return found


@cache
def _discover(family: str) -> None:
    for module in _modules(family, FAMILIES[family] + installed_packages(family)):
        _import(module)


@cache
def _named_in_text(family: str, packages: tuple[str, ...]) -> Mapping[str, str]:
    """Modules of a family in some packages by the names that their text says they register."""
    found = {}
    for module, path in _modules(family, packages).items():
        text = path.read_text("utf-8") if path.is_file() else ""
        constants = dict(_CONSTANT.findall(text))
        for name in _REGISTRATION.findall(text):
            found[constants.get(name, name).strip('"')] = module
    return found


@cache
def _load_entry_points() -> None:
    from importlib.metadata import entry_points

    for point in entry_points(group="foresail.plugins"):
        _bring(point.module, f"entry point {point.name}", point.load)


def load_plugin(path: Path) -> None:
    """Import a file outside the package so that what it registers is found.

    Raises ``InputError`` if the file cannot be imported, or registers a name that is taken, or what
    takes no record of parameters.
    """
    alike = [each.resolve() for each in (*_PLUGINS, path) if each.stem == path.stem]
    place = list(dict.fromkeys(alike)).index(path.resolve())
    name = f"{_PLUGIN_PREFIX}{path.stem}" + (f"_{place}" if place else "")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError("not a Python file", source=path, expected="a file ending in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for the names of their types
    _bring(name, path, partial(spec.loader.exec_module, module))
    from hashlib import sha256

    _PLUGINS[path] = sha256(path.read_bytes()).hexdigest()


@cache
def _import(module: str) -> None:
    if module.startswith("foresail."):
        importlib.import_module(module)
    else:
        _bring(module, f"module {module}", partial(importlib.import_module, module))


def _bring(module: str, source: object, load: Callable[[], object]) -> None:
    """Load a module from outside the house; ``InputError`` if it, or what it registers, fails."""
    _BROUGHT.add(module.partition(".")[0])
    try:
        load()
    except Exception as error:
        sys.modules.pop(module, None)
        line = None
        for frame, number in walk_tb(error.__traceback__):
            if _family_in(frame.f_globals.get("__name__", "")) is not None:
                source, line = frame.f_code.co_filename, number
        if isinstance(error, SyntaxError):
            source, line = error.filename, error.lineno
        problem = f"the plug-in fails on import: {error}"
        raise InputError(problem, source=source, line=line) from error
    for entry in [each for each in _ENTRIES.values() if each.build.__module__ == module]:
        family = entry.family
        for packages in (FAMILIES[family], installed_packages(family)):
            if _named_in_text(family, packages).get(entry.name, module) != module:
                del _ENTRIES[family, entry.name]
                problem = f"there is a {family} {entry.name!r} already"
                raise InputError(problem, **place_of(entry.build))
        _require_takes_parameters(entry)


def loaded_plugins() -> Mapping[Path, str]:
    """The files outside the package that were imported, with the digests of their contents."""
    return MappingProxyType(_PLUGINS)


def _family_in(module: str) -> str | None:
    """Return the family, in words, of what a module from outside the house registers.

    None: it is of the house, or of nobody who brings plug-ins.
    """
    if module.partition(".")[0] not in _BROUGHT:
        return None
    families = {each.family for each in _ENTRIES.values() if each.build.__module__ == module}
    return families.pop().replace("_", " ") if len(families) == 1 else "plug-in"


def _require_takes_parameters(entry: Entry) -> None:
    try:
        get_type_hints(entry.parameters)
        fields(entry.parameters)
        inspect.signature(entry.build).bind(entry.parameters)
    except (NameError, TypeError) as error:
        raise InputError(
            f"the {entry.family} {entry.name!r} cannot be made of its parameters: {error}",
            **place_of(entry.build),
            expected="a class or function of one argument, the record of parameters",
        ) from error


def entries(family: str) -> Iterator[Entry]:
    """All plug-ins of a family, by name."""
    _discover(family)
    _load_entry_points()
    for key in sorted(_ENTRIES):
        if key[0] == family:
            yield _ENTRIES[key]


def find_quickly(family: str, name: str) -> Entry | None:
    """The plug-in of this name if the text of a file shows it, importing that file alone."""
    name = todays_name(family, name)
    module = _named_in_text(family, FAMILIES[family]).get(name)
    if module is None:  # looking for other distributions takes long
        module = _named_in_text(family, installed_packages(family)).get(name)
    if module is None:
        _load_entry_points()
    else:
        _import(module)
    return _ENTRIES.get((family, name))


def find(family: str, name: str) -> Entry:
    """The plug-in of this name.

    Raises ``UnknownNameError`` if there is none; the message offers the nearest known names. Raises
    ``InputError`` if it comes with a distribution that is not installed.
    """
    name = todays_name(family, name)
    entry = find_quickly(family, name)
    if entry is not None:
        return entry
    known = {entry.name: entry for entry in entries(family)}
    if name not in known and (family, name) in ELSEWHERE:
        expected = f"{ELSEWHERE[family, name]} to be installed"
        raise InputError(
            "comes with another distribution", field=family, value=name, expected=expected
        )
    if name not in known:
        raise UnknownNameError(family, name, known)
    return known[name]


_CALLED: Final = re.compile(r"[\w.]*\.(\w+)\(\) (?:takes|missing|got)")
"""Beginning of what Python says of a call that does not fit a method."""


@contextmanager
def blaming_plug_ins() -> Iterator[None]:
    """Raise as ``InputError`` what a plug-in's file raised, or what it returned did."""
    try:
        yield
    except (Exception, SystemExit) as error:
        found = blamed(error)
        if found is error:
            raise
        raise found from error


def blamed(error: BaseException) -> BaseException:
    """The error of a user whose file failed, or returned what did; else the error itself."""
    import traceback

    if isinstance(error, ForesailError):
        return error
    problem = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}".removesuffix(": ")
    causes = [error, *([] if error.__cause__ is None else [error.__cause__])]
    frames = [one for each in causes for one in traceback.walk_tb(each.__traceback__)][::-1]
    for frame, line in frames:
        family = _family_in(frame.f_globals.get("__name__", ""))
        if family is not None:
            file = frame.f_code.co_filename
            return InputError(f"the {family} fails: {problem}", source=file, line=line)
    for frame, _ in [] if isinstance(error, SystemExit) else frames:
        asked = {type(each) for each in _known_in(frame)}
        found = sorted(_named(kind) for kind in asked if _family_in(kind.__module__) is not None)
        if found and isinstance(error, NotImplementedError):
            return InputError(f"{' or '.join(found)} lacks the method {frame.f_code.co_name}")
        if found:
            called = _CALLED.match(str(error))
            places = [
                place_of(kind, called[1]) for kind in asked if called and called[1] in vars(kind)
            ]
            said = f"{' or '.join(found)} returns what cannot be used: {problem}"
            return InputError(problem, **places[0]) if places else InputError(said)
    return error


def _known_in(frame: FrameType) -> list[object]:
    """All that is known where an error was raised: what was asked is among it."""
    known = frame.f_locals
    return [*known.values(), *getattr(known.get("self"), "__dict__", {}).values()]


def _named(kind: type) -> str:
    """A class with its file and line."""
    place = place_of(kind)
    return f"{place['source']}, line {place['line']}: {kind.__qualname__}"


def place_of(kind: Callable[..., Any], method: str = "") -> dict[str, Any]:
    """Source and line of a class from outside the house, or of its method; of our own nothing."""
    if kind.__module__.startswith("foresail."):
        return {}
    code = getattr(getattr(kind, method, None), "__code__", None)
    if code is not None:
        return {"source": code.co_filename, "line": code.co_firstlineno}
    try:
        return {"source": inspect.getsourcefile(kind), "line": inspect.getsourcelines(kind)[1]}
    except (OSError, TypeError):  # it was typed, not read
        return {}


@dataclass(frozen=True, slots=True)
class Example:
    """Files as a user would hand them in."""

    files: Mapping[str, bytes]
    """Content by name; a name may have folders."""
    given: str = ""
    """The name to read; empty: the folder that all of them are in."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Names of files by the option of the reader that takes them."""

    @classmethod
    def of_text(cls, name: str, text: str) -> Example:
        """One file of text."""
        return cls({name: text.encode()}, name)

    def write(self, folder: Path) -> Path:
        """Write the files into a folder; what is to be read."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder / self.given
