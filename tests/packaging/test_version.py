"""The version: said in one place, and described in the changelog."""

import re
import tomllib

import foresail
from architecture.floors import ROOT


def test_the_version_stands_in_one_place():
    """The project takes it from the package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" in settings["project"]["dynamic"]
    assert settings["tool"]["hatch"]["version"]["path"] == "src/foresail/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", foresail.__version__)


def test_studies_have_the_version_and_need_it():
    """They use modules that are not promised, so they fit one version of the product."""
    settings = tomllib.loads((ROOT / "studies" / "pyproject.toml").read_text("utf-8"))
    assert settings["tool"]["hatch"]["version"]["path"] == "../src/foresail/__init__.py"
    assert f"foresail=={foresail.__version__}" in settings["project"]["dependencies"]


def test_the_changelog_describes_the_version():
    """Its section has a date and follows what is not released yet."""
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(foresail.__version__)} - \d{{4}}-\d\d-\d\d", headings[1])
