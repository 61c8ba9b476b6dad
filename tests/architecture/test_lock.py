"""The lock: every dependency pinned by version and hash, and nothing that names a place."""

import re
import tomllib

from architecture.floors import ROOT

LOCK = (ROOT / "requirements.lock").read_text("utf-8")
PIN = re.compile(
    r"^([a-z0-9][a-z0-9.-]*)==\S+[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", re.MULTILINE
)


def name_of(requirement: str) -> str:
    """The normalised name at the start of a requirement."""
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


def test_the_lock_names_no_place() -> None:
    """No address, host, path or index option: versions, markers and hashes only."""
    others = [
        line
        for line in LOCK.splitlines()
        if not re.fullmatch(
            r"[\w.-]+==[\w.!+-]+( ; [^/\\]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line
        )
    ]
    assert others == []


def test_the_lock_holds_every_dependency() -> None:
    """What pyproject.toml asks for, build backend and all extras, is pinned with hashes."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = settings["project"]
    beside = [
        tomllib.loads((ROOT / name / "pyproject.toml").read_text("utf-8"))["project"]
        for name in ("studies", "kubernetes", "slurm")
    ]
    asked = [*project["dependencies"], *settings["build-system"]["requires"]]
    asked += [each for other in beside for each in other["dependencies"]]
    for extra in project["optional-dependencies"].values():
        asked += extra
    wanted = {name_of(requirement) for requirement in asked} - {"foresail"}
    pinned = {match[1] for match in PIN.finditer(LOCK)}
    assert wanted - pinned == set()
