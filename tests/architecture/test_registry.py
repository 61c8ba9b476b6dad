"""One plug-in by name costs the import of its own file; all others are found all the same."""

import json
import subprocess
import sys

import pytest

from foresail.model import registry
from foresail.model.errors import UnknownNameError

TOLD = """
import json, sys
from foresail.control.policy import parse_policy
parse_policy("easy")
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("family", registry.FAMILIES)
def test_the_text_of_files_shows_every_name(family):
    """What a family's files say that they register is what they do."""
    packages = registry.FAMILIES[family] + registry.installed_packages(family)
    here = tuple(registry._modules(family, packages))
    registered = {
        entry.name for entry in registry.entries(family) if entry.build.__module__ in here
    }
    assert set(registry._named_in_text(family, packages)) == registered


def test_a_named_policy_imports_its_own_parts_alone():
    """Neither other schedulers, nor other predictors, nor other corrections."""
    done = subprocess.run([sys.executable, "-c", TOLD], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    parts = {
        module
        for family in ("scheduler", "predictor", "correction")
        for module in registry._named_in_text(family, registry.FAMILIES[family]).values()
    }
    assert parts & loaded == {
        "foresail.schedulers.backfilling",
        "foresail.predictors.requested",
        "foresail.corrections.built_in",
    }


def test_a_name_that_no_text_shows_is_found(monkeypatch):
    """What registers in another way costs the import of the whole family, but is found."""
    monkeypatch.setattr(registry, "_named_in_text", lambda family, packages: {})
    monkeypatch.setattr(registry, "_ENTRIES", {})
    found = []
    monkeypatch.setattr(registry, "_discover", found.append)
    with pytest.raises(UnknownNameError):
        registry.find("scheduler", "easy")
    assert found == ["scheduler"]
