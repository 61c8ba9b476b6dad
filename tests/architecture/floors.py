"""The picture of the floors, read from the import contract and the code; run it to write it.

The table in ``docs/architecture.md`` stands between two markers, and ``test_floors.py`` compares it
with what is computed here.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "foresail"
STUDIES = ROOT / "studies" / "src" / "foresail_studies"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- floors: made by `make format` -->\n"
END = "<!-- end of floors -->\n"


def packages() -> list[str]:
    """Names of the packages directly under ``foresail``."""
    return sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))


def floors() -> list[list[str]]:
    """Packages by floor, the top floor first, as the import contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def has_package(folder: Path) -> bool:
    """Whether there is a package of this path below ``foresail``, public or private."""
    *parents, name = folder.parts
    home = SOURCE.joinpath(*parents)
    return (home / name / "__init__.py").is_file() or (home / f"_{name}" / "__init__.py").is_file()


def subject(package: str) -> str:
    """What the package is about: first paragraph of its docstring, as Markdown."""
    tree = ast.parse((SOURCE / package / "__init__.py").read_text("utf-8"))
    paragraph = (ast.get_docstring(tree) or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).replace("``", "`")


def imported(package: str) -> set[str]:
    """Other packages of ``foresail`` that any module of this one imports, early or late."""
    found = set()
    for path in (SOURCE / package).rglob("*.py"):
        for name in imported_names(ast.parse(path.read_text("utf-8"))):
            parts = name.split(".")
            if parts[0] == "foresail" and len(parts) > 1:
                found.add(parts[1])
    return found & set(packages()) - {package}


def imported_names(tree: ast.Module) -> Iterator[str]:
    """Dotted names of everything that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports() -> Iterator[tuple[str, str]]:
    """What each module, of studies too, imports of both: its own dotted name, and the other's."""
    for path in [*SOURCE.rglob("*.py"), *STUDIES.rglob("*.py")]:
        home = SOURCE if path.is_relative_to(SOURCE) else STUDIES
        parts = path.relative_to(home.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for name in imported_names(ast.parse(path.read_text("utf-8"))):
            if name.startswith(("foresail.", "foresail_studies.")):
                yield module, name


def is_trespassing(module: str, imported: str) -> bool:
    """Whether a module imports something private of a package or module that it is no part of."""
    parts = imported.split(".")
    homes = [
        ".".join(parts[:at])
        for at, part in enumerate(parts)
        if part.startswith("_") and not part.startswith("__")
    ]
    return any(not f"{module}.".startswith(f"{home}.") for home in homes)


def table() -> str:
    """The floors as a Markdown table, the top floor first, what stands beside them last."""
    stack = floors()
    order = [name for floor in stack for name in floor]
    rows = ["| floor | package | its subject | imports |", "|---:|---|---|---|"]
    for number, floor in zip(reversed(range(len(stack))), stack, strict=True):
        rows += [row(str(number), package, order) for package in floor]
    rows += [row("beside", package, order) for package in packages() if package not in order]
    return "\n".join(rows) + "\n"


def row(floor: str, package: str, order: list[str]) -> str:
    """One line of the table; what is imported is named from the top down."""
    names = ", ".join(sorted(imported(package), key=order.index))
    return f"| {floor} | `{package}` | {subject(package)} | {names} |"


def drawn() -> str:
    """The table as it stands on the page."""
    return PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    """Put the table of today between the markers."""
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    PAGE.write_text(before + begin + table() + end + after, "utf-8")


if __name__ == "__main__":
    main()
