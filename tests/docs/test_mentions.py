"""What the documentation names, exists."""

import importlib.util
import re
from pathlib import Path

import pytest

from foresail.model.registry import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (".", "docs", "docs/[a-z]*")
PAGES = [page for folder in FOLDERS for page in sorted(ROOT.glob(f"{folder}/*.md"))]
MODULE = re.compile(r"`(foresail(?:_studies|_kubernetes|_slurm)?(?:\.[a-z_]+)+)`")
NAMED = ("plugins", "commands", "cloud.commands", *FAMILIES)
GROUPS = {f"foresail.{name}" for name in NAMED}
FILE = re.compile(
    r"`(?!docs/_build)((?:src|studies|kubernetes|slurm|tests|docs|examples|scripts|\.ci)/[\w./-]+)`"
)


def exists(dotted: str) -> bool:
    """Whether this is a module, or a group of entry points."""
    return dotted in GROUPS or importlib.util.find_spec(dotted) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_and_files_named_on_a_page_exist(page: Path) -> None:
    """Every module and every file of the checkout that a page names in code can be found."""
    text = page.read_text("utf-8")
    modules = [name for name in MODULE.findall(text) if not exists(name)]
    files = [name for name in FILE.findall(text) if not (ROOT / name).exists()]
    assert (modules, files) == ([], [])
