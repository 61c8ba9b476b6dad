"""Job scripts: directives become fields, and what would be lost is refused with its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.client.job_script import job_of_script, read_script
from foresail.model.errors import InputError


def asked(*directives, first="#!/bin/bash"):
    """What a script of these directives asks for."""
    text = "\n".join([first, *directives, "echo done"])
    job = job_of_script(text, "job.sh")
    command = job.pop("command")
    assert command == ["/bin/bash", "-c", text]
    return job


@pytest.mark.parametrize(
    ("directive", "field"),
    [
        ("#SBATCH -J name", {"name": "name"}),
        ("#SBATCH --job-name=name # why", {"name": "name"}),
        ("#SBATCH -n4", {"tasks": 4}),
        ("#SBATCH -c 2", {"cpus": 2}),
        ("#SBATCH --mem=500", {"memory": "500MiB"}),
        ("#SBATCH --mem=2G", {"memory": "2GiB"}),
        ("#SBATCH -t 90", {"requested_time": 5400}),
        ("#SBATCH -t 1:30", {"requested_time": 90}),
        ("#SBATCH -t 1:30:05", {"requested_time": 5405}),
        ("#SBATCH --time=2-12", {"requested_time": 216000}),
        ("#SBATCH --time=1-0:30", {"requested_time": 88200}),
        ("#SBATCH -d afterok:3:4", {"after": ["3", "4"]}),
        ("#SBATCH -a 0-9", {"array": "0-9"}),
        ("#SBATCH -N 1", {}),
        ("#SBATCH --nodes=1 --ntasks=1", {"tasks": 1}),
        ("#SBATCH -D /tmp", {"directory": "/tmp"}),
        ("#SBATCH --export=A=1,B=x", {"environment": {"A": "1", "B": "x"}}),
        ("#SBATCH -H", {"held": True}),
        ("#FORESAIL --time 2h --deadline=6h", {"requested_time": "2h", "deadline": "6h"}),
        ("#FORESAIL --after 3,4 --memory 2GiB", {"after": ["3", "4"], "memory": "2GiB"}),
        ("# SBATCH -n 4", {}),
        ("#SBATCH", {}),
    ],
)
def test_directives(directive, field):
    """Each option is the field that means the same; other comments are none."""
    assert asked(directive) == field


def test_directives_end_with_the_first_command():
    """As sbatch has it."""
    assert asked("true", "#SBATCH -n 4") == {}


@pytest.mark.parametrize(
    ("directive", "words"),
    [
        ("#SBATCH --gres=gpu:1", "there is no such option"),
        ("#SBATCH --output=%x-%j.out", "foresail logs"),
        ("#SBATCH -N 2", "--cpus-per-task say how much"),
        ("#SBATCH --nodes=1 --ntasks=2", "'--nodes'.* expected 1, of one task"),
        ("#SBATCH --error=%x-%j.err", "'--error'.*foresail logs"),
        ("#SBATCH --partition=long", "'--partition'.*`preferred` of a jobs file"),
        ("#SBATCH -p long", "'-p'.*waits for all nodes"),
        ("#SBATCH --array=0-99%5", "'--array'.*0-99%5.*0-99 without %5: how many run at once"),
        ("#FORESAIL --array 0-99%5", "how many run at once cannot be limited"),
        ("#SBATCH --mail-type=END", "nobody is sent mail"),
        ("#SBATCH -n four", "a whole number"),
        ("#SBATCH -n", "a value"),
        ("#SBATCH -t soon", "a time as sbatch takes it"),
        ("#SBATCH --mem=2X", "a size"),
        ("#SBATCH -d afterany:3", "afterok"),
        ("#SBATCH --export=ALL", "plain environment"),
        ("#SBATCH --export=A", "NAME=value"),
        ("#SBATCH stray", "not an option"),
        ('#SBATCH -J "open', "cannot be read"),
    ],
)
def test_what_would_be_lost_is_refused(directive, words):
    """With the line that it is in."""
    with pytest.raises(InputError, match=f"(?s)line 3.*{words}"):
        asked("#", directive)


@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#!/bin/sh -e", "echo hello"])
def test_what_runs_it(first, tmp_path):
    """The interpreter that it names; sh if it names none."""
    path = tmp_path / "my job.sh"
    path.write_text(first + "\n")
    words = first[2:].split() if first.startswith("#!") else ["/bin/sh"]
    assert read_script(path) == {"name": "my_job.sh", "command": [*words, "-c", first + "\n"]}


@pytest.mark.parametrize("first", ["#!/usr/bin/perl", "#!", "#!/usr/bin/env"])
def test_what_cannot_run_a_text_is_refused(first):
    """Its command can be submitted instead."""
    with pytest.raises(InputError, match=r"submit -- \./script"):
        job_of_script(first, "job.pl")


@given(st.text())
def test_any_text_is_a_job_or_refused(text):
    """Never another error."""
    try:
        job = job_of_script(text, Path("job.sh"))
    except InputError:
        return
    assert job["command"][-1] == text
