"""The documentation site: builds without a warning, and its pages load nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"([^\"]+)\"|<link[^>]*>")
FROM_ELSEWHERE = re.compile(r"(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; warnings are errors.

    Without the Python objects among the contents, of which the theme makes a tree for every page:
    that is a third of the work.
    """
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet", "-b", "html"]
    command += ["-D", "toc_object_entries=0"]
    result = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return folder / "html"


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    """Scripts, styles and pictures come with the site, so that it works offline."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        for loaded in LOADED.finditer(page.read_text("utf-8")):
            assert not FROM_ELSEWHERE.search(loaded[0]), (page.name, loaded[0])
    for style in site.rglob("*.css"):
        text = style.read_text("utf-8")
        assert not re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", text), style.name


def test_every_plug_in_has_a_section(site: Path) -> None:
    """The generated reference names every registered plug-in."""
    from foresail.model.registry import FAMILIES, entries

    for family in FAMILIES:
        name = {"analysis": "analyses", "study": "studies"}.get(family, f"{family}s")
        page = (site / "_generated" / f"{name}.html").read_text("utf-8")
        ours = [
            each
            for each in entries(family)
            if each.build.__module__.startswith(("foresail.", "foresail_studies."))
        ]
        assert ours
        for entry in ours:  # other tests in this process may have registered plug-ins of theirs
            assert f'>{entry.name}</span></code><a class="headerlink"' in page, entry.name


def test_the_python_interface_is_described(site: Path) -> None:
    """Every module of the pages has its heading, and records and functions have what they mean."""
    pages = sorted((site / "_generated").glob("python-*.html"))
    assert len(pages) == 5
    text = "".join(page.read_text("utf-8") for page in pages)
    wanted = ("model.job.Job", "model.protocols.Scheduler", "model.registry.register")
    wanted += ("distributions.histogram.Histogram", "traces.folder.load_workload")
    wanted += (
        "scenario.running.run_scenario",
        "metrics.summary.Summary",
        "checks.rules.tiny_workload",
    )
    for name in wanted:
        assert f'id="foresail.{name}"' in text, name
    assert "(*args, **kwargs)" not in text
