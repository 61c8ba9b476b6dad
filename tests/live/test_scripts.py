"""Scripts are files: what jobs of them see, and what is refused."""

import os
import sys

import pytest

from empty_rooms import empty_room
from foresail.live.command_job import CommandJob
from foresail.live.jobs_file import JobLines
from local_runs import LocalRun


@pytest.fixture
def ran(tmp_path):
    """Runs a job to its end; gives its outcome and what it has written."""
    run = LocalRun(tmp_path)
    yield lambda job: (run.ran(job), run.log(job.job_id))
    run.adapter.close()


def script(text, *arguments):
    return CommandJob("1", "job.sh", "", "/", script=text, arguments=arguments)


def test_a_script_is_run_by_what_its_first_line_names_with_its_words(ran):
    text = f"#!{sys.executable} -I\nimport sys\nprint(sys.argv[1:], sys.flags.isolated)\n"
    outcome, written = ran(script(text, "a b", "$HOME"))
    assert (outcome.exit_code, written) == (0, "['a b', '$HOME'] 1\n")


def test_no_process_shows_its_text_and_its_file_is_its_owners_alone(ran):
    text = '#!/bin/sh\ntr "\\0" " " < /proc/$$/cmdline\nstat -c " %a" "$0"\n'
    _, written = ran(script(text))
    shell, file, mode = written.split()
    assert (shell, mode) == ("/bin/sh", "600")
    assert file.endswith("/1.1.script")


@pytest.mark.parametrize("folder", ["attempts", "logs"])
def test_what_has_its_name_gives_way_and_is_not_waited_for(ran, tmp_path, folder):
    """A user who guesses the next number could make a job that nobody can end."""
    os.mkfifo(tmp_path / folder / "1.1.script")
    assert ran(script("#!/bin/sh\necho ran\n"))[1] == "ran\n"


def test_a_line_for_sh_is_such_a_file_too_which_is_gone_afterwards(ran, tmp_path):
    secret = "echo $0 # password"
    _, written = ran(CommandJob("1", "echo", secret, "/"))
    assert written.endswith("/1.1.script\n")
    assert not list(tmp_path.rglob("*.script"))


def test_its_record_and_its_line_bring_it_back(tmp_path):
    total = empty_room(2.0, 2.0**35, 2.0)
    fields = {"script": "true\n", "arguments": ["x", "y z"]}
    job = JobLines(total, tmp_path, "jobs").job(fields, 1)
    assert CommandJob.from_json(job.to_json()) == job
    record = {name: value for name, value in job.record().items() if name != "name"}
    again = JobLines(total, tmp_path, "jobs").job(record, 1)
    assert (again.script, again.arguments) == (job.script, job.arguments)
