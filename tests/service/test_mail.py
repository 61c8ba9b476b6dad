"""The mail hook: told when jobs begin and end, and no burden to anybody however it behaves."""

from __future__ import annotations

import json
import time

import pytest

from foresail.live.command_job import CommandJob
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause, Outcome
from foresail.service.api.submissions import JobChecks, JobRequest
from foresail.service.configuration import read_configuration
from foresail.service.mail import MailHook
from foresail.service.parts import ClusterLimits, KnownDirectories
from live_service import live_service
from until import until


def program(folder, text):
    path = folder / "send"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def job(mail_type, name="fit"):
    return CommandJob("1", name, "true", "/", user="ann", mail_type=mail_type, mail_user="ann")


def outcome(because, code=0, attempt=1):
    return Outcome("1", 0.0, 5.0, because, code, attempt)


@pytest.mark.parametrize(
    ("asked", "ends", "told"),
    [
        ("BEGIN,END,FAIL,REQUEUE", ["completed"], ["BEGIN", "END"]),
        ("FAIL", ["completed"], []),
        ("FAIL", ["lost", "failed"], ["FAIL"]),
        ("END", ["failed"], ["END"]),
        ("REQUEUE,TIME_LIMIT", ["preempted", "limit"], ["REQUEUE", "TIME_LIMIT"]),
        ("BEGIN", ["lost", "completed"], ["BEGIN"]),
        ("", ["failed"], []),
    ],
)
def test_what_was_asked_for_is_told_once(tmp_path, asked, ends, told):
    said = tmp_path / "said"
    hook = MailHook(
        [program(tmp_path, f'echo "$FORESAIL_MAIL_TYPE" >> {said}')], {"1": job(asked)}, ()
    )
    for attempt, because in enumerate(ends, 1):
        hook.started("1", attempt)
        hook.ended(outcome(EndedBecause(because), attempt=attempt))
    hook._calls.join()
    assert (said.read_text().split() if said.exists() else []) == told


def test_the_program_gets_values_as_words_and_no_shell_reads_them(tmp_path, monkeypatch):
    """It has no secrets of the service; a name cannot make a second line of a subject."""
    monkeypatch.setenv("PGPASSWORD", "secret")
    said = tmp_path / "said"
    text = f'printf "%s\\n" "$@" "$FORESAIL_MAIL_EXIT_CODE" "$PGPASSWORD" > {said}'
    hook = MailHook([program(tmp_path, text), "one"], {"1": job("END", "$(x)\nBcc: all")}, ())
    hook.started("1", 1)
    hook.ended(outcome(EndedBecause.FAILED, 3))
    hook._calls.join()
    subject = "Foresail Job_id=1 Name=$(x)?Bcc: all Ended (failed, exit code 3), run time 5 s"
    assert said.read_text().splitlines() == ["one", "-s", subject, "ann", "3", ""]


@pytest.mark.parametrize("written", [str, lambda line: json.dumps(json.loads(line))])
def test_jobs_that_ran_before_a_restart_are_told_of(tmp_path, written):
    """Also those that a former version wrote, with spaces in their lines."""
    said = tmp_path / "said"
    stored = [("1", written(job("END").to_json())), ("2", written(job("").to_json()))]
    hook = MailHook([program(tmp_path, f"echo $4 $FORESAIL_MAIL_JOB_ID >> {said}")], {}, stored)
    hook.ended(outcome(EndedBecause.COMPLETED))
    hook.ended(outcome(EndedBecause.COMPLETED))
    hook._calls.join()
    assert said.read_text() == "1\n"


def test_a_program_that_hangs_fails_or_is_gone_holds_up_nobody(tmp_path, caplog):
    """What it has begun is killed with it; what comes while a thousand calls wait is dropped."""
    path = program(tmp_path, "sleep 60 & sleep 60")
    hook = MailHook([path], {"1": job("BEGIN")}, (), patience_seconds=1.5)
    began = time.monotonic()
    for _ in range(1_005):
        hook.started("1", 1)
    assert time.monotonic() - began < 1.0
    dropped = [each for each in caplog.messages if "mail is dropped" in each]
    assert 1 <= len(dropped) <= 2  # the first call may leave the queue in between
    until(lambda: [each for each in caplog.messages if "has not ended in 1.5 s" in each])
    (tmp_path / "send").unlink()
    hook._calls.join()
    assert len([each for each in caplog.messages if "cannot be run" in each]) == 1


def test_mail_that_would_not_be_sent_is_refused():
    cluster = Cluster.of_processors(2)
    asked = JobRequest(command="true", mail_type="END")
    with pytest.raises(InputError, match="mail is not set up here"):
        JobChecks("ann", ClusterLimits(cluster), KnownDirectories()).job(asked)
    checks = JobChecks("ann", ClusterLimits(cluster), KnownDirectories(), sends_mail=True)
    assert checks.job(asked).mail_user == "ann"
    everything = checks.job(JobRequest(command="true", mail_type=["all", "TIME_LIMIT"]))
    assert everything.mail_type == "BEGIN,END,FAIL,REQUEUE,TIME_LIMIT"
    for wrong in ({"mail_type": "TIME_LIMIT_90"}, {"mail_type": "END", "mail_user": "-f/etc/x"}):
        with pytest.raises(InputError, match=r"is no address|is not known"):
            checks.job(JobRequest(command="true", **wrong))
    array = JobRequest(command="true", mail_type="END", array="0-1")
    with pytest.raises(InputError, match="about an array as a whole"):
        checks.job(array)
    checks.job(JobRequest(command="true", mail_type="END,ARRAY_TASKS", array="0-1"))
    JobChecks("ann", ClusterLimits(cluster), KnownDirectories()).job(
        JobRequest(command="true", mail_type="NONE")
    )


def test_a_hook_is_an_absolute_path_of_a_program(tmp_path):
    for wrong in ("mail", str(tmp_path / "none")):
        (tmp_path / "service.toml").write_text(f'[hooks]\nmail = ["{wrong}"]\n')
        with pytest.raises(InputError, match=r"hooks\.mail"):
            read_configuration(tmp_path / "service.toml")


def test_a_service_has_mail_sent(tmp_path):
    said = tmp_path / "said"
    path = program(tmp_path, f'echo "$FORESAIL_MAIL_TYPE to $FORESAIL_MAIL_TO" >> {said}')
    with live_service(tmp_path, after=f'[hooks]\nmail = ["{path}"]') as service:
        with service.client() as client:
            body = {"command": "false", "mail_type": "ALL", "mail_user": "ann@example.org"}
            assert client.post("/v1/jobs", json=body).status_code == 201
        until(lambda: said.exists() and said.read_text().count("\n") >= 2)
    assert said.read_text() == "BEGIN to ann@example.org\nFAIL to ann@example.org\n"
