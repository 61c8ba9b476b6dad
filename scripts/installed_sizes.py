"""Print how large the runtime dependencies are as installed here, each with what it brings along.

.venv/bin/python scripts/installed_sizes.py
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution

EXTRAS = ("", "postgresql", "png", "dask", "development")


def direct(package: str, extra: str = "") -> set[str]:
    """Names that a package requires, for an extra or for none."""
    names = set()
    for requirement in distribution(package).requires or []:
        name, _, marker = requirement.partition(";")
        wanted = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        if (wanted[1] if wanted else "") == extra:
            names.add(name)
    return names


def closure(requirements: set[str]) -> set[str]:
    """Everything installed that these requirements lead to, by name."""
    found: set[str] = set()
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        name = re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")
        extras = re.search(r"\[([^\]]+)\]", requirement)
        for extra in extras[1].split(",") if extras else ():
            waiting += direct(name, extra.strip())
        if name in found or name == "foresail":
            continue
        try:
            waiting += direct(name)
        except PackageNotFoundError:
            continue
        found.add(name)
    return found


def size_megabytes(name: str) -> float:
    """Bytes of all files of an installed package, in units of 1,000,000."""
    package = distribution(name)
    paths = [package.locate_file(file) for file in package.files or []]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def main() -> None:
    """Print two tables: direct dependencies, then each extra as a whole."""
    print("| package | version | MB | MB with what it needs |")
    print("|---|---|---:|---:|")
    for name in sorted({re.match(r"[\w-]+", each)[0] for each in direct("foresail")}):
        whole = sum(map(size_megabytes, closure({name})))
        version = distribution(name).version
        print(f"| {name} | {version} | {size_megabytes(name):.0f} | {whole:.0f} |")
    print("\n| install | packages | MB |\n|---|---:|---:|")
    base = closure(direct("foresail"))
    for extra in EXTRAS:
        names = base | closure(direct("foresail", extra))
        label = f"foresail[{extra}]" if extra else "foresail"
        print(f"| {label} | {len(names)} | {sum(map(size_megabytes, names)):.0f} |")


if __name__ == "__main__":
    main()
