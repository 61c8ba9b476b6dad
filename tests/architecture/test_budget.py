"""How large the house may be: growth has to be decided, in ``budget.toml``."""

import tomllib

import pytest

from architecture import floors, house

BUDGET = tomllib.loads((floors.ROOT / "budget.toml").read_text("utf-8"))


def size(package: str = "") -> dict[str, int]:
    """Lines and files of a package; of all of the source without one."""
    files = list((floors.SOURCE / package).rglob("*.py"))
    return {
        "lines": sum(file.read_bytes().count(b"\n") for file in files),
        "files": len(files),
    }


def test_every_package_has_a_budget() -> None:
    """A new package is decided as well."""
    assert sorted(BUDGET["packages"]) == floors.packages()


@pytest.mark.parametrize("measure", ["lines", "files"])
def test_the_whole_is_within_its_budget(measure: str) -> None:
    """What one package gains another has given back."""
    assert size()[measure] <= BUDGET["whole"][measure]


@pytest.mark.parametrize("package", floors.packages())
def test_a_package_is_within_its_budget(package: str) -> None:
    """Its figure and the reserve that every package has."""
    budget, reserve = BUDGET["packages"][package], BUDGET["reserve"]
    over = {
        measure: found
        for measure, found in size(package).items()
        if found > budget[measure] + reserve[measure]
    }
    assert not over, f"{over}: give something back, or raise budget.toml and say what left instead"


def test_every_count_has_a_budget() -> None:
    """What is counted is held, and what is held is counted."""
    assert sorted(BUDGET["counts"]) == sorted(house.COUNTS)


@pytest.mark.parametrize("name", sorted(house.COUNTS))
def test_a_count_is_within_its_budget(name: str) -> None:
    """Words, parameters and small files do not come back."""
    found = list(house.COUNTS[name]())
    look = f"python tests/architecture/house.py {name}"
    assert len(found) <= BUDGET["counts"][name], look
