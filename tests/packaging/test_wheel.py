"""Wheels in a fresh environment: the product alone replays, its studies are found beside it."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import foresail
from architecture.floors import ROOT

HOMES = {
    "foresail": ROOT / "src",
    "foresail_studies": ROOT / "studies" / "src",
    "foresail_kubernetes": ROOT / "kubernetes" / "src",
    "foresail_slurm": ROOT / "slurm" / "src",
}
"""Packages to the folder that they are in."""
JOBS = [(0, 2, 100, 150), (0, 2, 50, 100), (1, 4, 60, 120), (2, 2, 50, 60), (3, 2, 30, 90)]
"""Submission, processors, runtime and requested time."""


def run(command, **options):
    """Run a command without the checkout on its path; its output, or a failure that shows it."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env=environment | options.pop("env", {}),
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheels of this checkout by package, built without the network."""
    folder = tmp_path_factory.mktemp("dist")
    for home in HOMES.values():
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
        run([*build, home.parent], env={"PYTHONPATH": os.environ.get("PYTHONPATH", "")})
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def install(tmp_path_factory):
    """Installs a wheel without the network, and without what it needs."""

    def install(python, wheel):
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
        run([*pip, "--disable-pip-version-check", "--no-deps", "--no-index", wheel])

    return install


@pytest.fixture(scope="module")
def fresh(wheels, install, tmp_path_factory):
    """The scripts of a new environment that has the wheel, and sees what else is installed here.

    The other packages are seen through one line that names their folder. Python does not follow the
    lines of files in a folder named in that way, so an editable installation is not seen.
    """
    folder = tmp_path_factory.mktemp("elsewhere") / "environment"
    venv.create(folder, with_pip=False, symlinks=True)
    scripts = folder / "bin"
    install(scripts / "python", wheels["foresail"])
    here = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text("".join(f"{each}\n" for each in sorted(here)))
    return scripts


@pytest.mark.parametrize("package", HOMES)
def test_the_wheel_has_the_whole_package(wheels, package):
    """Every file of the package, its version and, of the product, its licence; nothing else."""
    with zipfile.ZipFile(wheels[package]) as archive:
        names = set(archive.namelist())
    information = f"{package}-{foresail.__version__}.dist-info"
    files = {
        path.relative_to(HOMES[package]).as_posix()
        for path in (HOMES[package] / package).rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    assert {name for name in names if not name.startswith(information)} == files
    assert (f"{information}/licenses/LICENSE" in names) is (package == "foresail")


@pytest.mark.slow
def test_the_installed_wheel_replays_a_log(fresh, tmp_path):
    """The ``foresail`` command of the new environment, in a folder of its own."""
    where = "import foresail; print(foresail.__file__, foresail.__version__)"
    file, version = run([fresh / "python", "-c", where], cwd=tmp_path).split()
    assert Path(file).is_relative_to(fresh.parent)
    assert version == foresail.__version__
    assert run([fresh / "foresail", "--version"], cwd=tmp_path) == f"foresail {version}\n"
    rows = (
        f"{number} {submit} 0 {seconds} {cpus} -1 -1 {cpus} {limit} -1 1 1 1 -1 -1 -1 -1 -1\n"
        for number, (submit, cpus, seconds, limit) in enumerate(JOBS, start=1)
    )
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n" + "".join(rows))
    command = [fresh / "foresail", "simulate", "log.swf", "--policy", "easy"]
    told = run([*command, "--format", "json", "--output", "result"], cwd=tmp_path)
    assert '"jobs": 5' in told
    assert (tmp_path / "result" / "report.html").exists()


@pytest.mark.slow
def test_the_installed_studies_are_found(fresh, install, wheels, tmp_path):
    """Their wheel beside the product's brings the command, every study, and what one runs with."""
    install(fresh / "python", wheels["foresail_studies"])
    where = "import foresail_studies; print(foresail_studies.__file__)"
    assert Path(run([fresh / "python", "-c", where])).is_relative_to(fresh.parent)
    known = run([fresh / "foresail", "experiment", "list"], cwd=tmp_path)
    assert {"3sigma-load", "slearn-bins", "waiting-models"} <= set(known.split())


@pytest.mark.slow
def test_the_installed_cluster_of_slurm_is_found(fresh, install, wheels, tmp_path):
    """Command and cluster say what to install where it is not; with its wheel both are there."""
    (tmp_path / "jobs.toml").write_text('[jobs.a]\ncommand = "true"\n')
    asked = (["slurm", "start"], ["run", "jobs.toml", "--cluster", "slurm"])

    def refused():
        found = []
        for words in asked:
            command, empty = [fresh / "foresail", *words], {"PATH": "", "HOME": str(tmp_path)}
            done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=empty)
            found.append((done.returncode, done.stderr.removeprefix("foresail: ").strip()))
        return found

    comes, expected = "comes with another distribution", "expected foresail-slurm to be installed"
    assert refused() == [
        (2, f"foresail slurm {comes}; {expected}"),
        (2, f"field 'cluster': {comes} (found 'slurm'); {expected}"),
    ]
    install(fresh / "python", wheels["foresail_slurm"])
    where = "import foresail_slurm; print(foresail_slurm.__file__)"
    assert Path(run([fresh / "python", "-c", where])).is_relative_to(fresh.parent)
    (_, without_slurm), (_, without_commands) = refused()
    assert "expected Slurm" in without_slurm
    assert "runs no commands of Foresail's" in without_commands
