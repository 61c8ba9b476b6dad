"""The floors: what may import what, and the picture of it."""

import ast
import importlib.util
import json
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import foresail
import foresail_studies
from architecture import floors

HEAVY = (
    "importlib.metadata",
    "numpy",
    "numba",
    "polars",
    "plotly",
    "pydantic",
    "psutil",
    "zstandard",
    "httpx",
)


def test_picture_is_the_code() -> None:
    """The table on the architecture page is what the code and the contract say (make format)."""
    assert floors.drawn() == floors.table()


def test_every_package_has_a_floor() -> None:
    """Contract and folders name the same packages, each once; only checks stands beside."""
    on_floors = [name for floor in floors.floors() for name in floor]
    assert sorted([*on_floors, "checks"]) == floors.packages()


def test_contracts_are_kept() -> None:
    """The import contracts hold, also for imports inside functions."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    result = subprocess.run(command, cwd=floors.ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_what_is_private_stays_at_home() -> None:
    """A name with a leading underscore is imported only within the package or module it is of."""
    assert [each for each in floors.imports() if floors.is_trespassing(*each)] == []


@pytest.mark.parametrize(
    ("module", "imported", "trespasses"),
    [
        ("foresail.cli.compare", "foresail.cli._scenarios.ScenarioOptions", False),
        ("foresail.cli.cloud.buy", "foresail.cli._again.command", False),
        ("foresail.cli.compare", "foresail.cli.cloud._options.Log", True),
        ("foresail.simulator.replay", "foresail.schedulers._queueing.Queueing", True),
        ("foresail.cli.compare", "foresail.cli.formats._row", True),
        ("foresail.cli.compare", "foresail.__version__", False),
    ],
)
def test_trespassing(module: str, imported: str, trespasses: bool) -> None:
    """Drawn by hand: a sibling's or a parent's private module is home, all else is not."""
    assert floors.is_trespassing(module, imported) is trespasses


def test_a_class_name_stands_for_one_thing() -> None:
    """No class of the whole house, private ones among them, is called as another one is."""
    files = [*floors.SOURCE.rglob("*.py"), *floors.STUDIES.rglob("*.py")]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    names = [
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    assert sorted(name for name, times in Counter(names).items() if times > 1) == []


def test_every_package_says_its_subject() -> None:
    """The first thing in every package is one sentence about its one subject."""
    silent = [name for name in floors.packages() if not floors.subject(name)]
    assert silent == []


def modules() -> list[str]:
    """All modules of the package and of its studies by dotted name."""
    return [
        each.name
        for package in (foresail, foresail_studies)
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]


@pytest.mark.parametrize("name", modules())
def test_every_module_says_its_subject(name: str) -> None:
    """Every module opens with a docstring."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).read_text("utf-8").startswith(('"""', 'r"""'))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []], ids=" ".join)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    """The help and the version are told without loading a library that takes long to load."""
    code = (
        "import sys, json\n"
        "from pathlib import Path\n"
        "from foresail.model import whole_files\n"
        "whole_files.MACHINE_SOCKET = Path('/none')  # whatever runs on this machine\n"
        "whole_files.well_known_socket = lambda uid: Path('/none')\n"
        "from foresail.cli.main import main\n"
        f"sys.argv = ['foresail', *{arguments!r}]\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    pass\n"
        "print(json.dumps(sorted(sys.modules)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(result.stdout.splitlines()[-1]))
    assert "foresail.cli.main" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_tests_mirror_the_source() -> None:
    """A folder of tests has the name of a package, of a subpackage, or of what is not code."""
    tests = floors.ROOT / "tests"
    beside = {"architecture", "docs", "kubernetes", "packaging", "slurm", "studies"}
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    strangers = [
        str(folder)
        for folder in folders
        if folder.parts[0] not in beside and not floors.has_package(folder)
    ]
    assert strangers == []
