"""Variables of commands: of a login, and what tells a command of itself (Slurm's names too)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from foresail.live.accounts import Account
from foresail.live.command_job import CommandJob
from foresail.live.job_fields import host_name

_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_OURS: Final = "FORESAIL_"
"""What variables begin with that are Foresail's: a token is none of a job's business."""


def login_environment(account: Account) -> Mapping[str, str]:
    """What an account's commands get: who it is, where programs are, language and time zone."""
    of_the_machine = {
        name: value
        for name, value in os.environ.items()
        if name in ("LANG", "TZ") or name.startswith("LC_")
    }
    return {
        **of_the_machine,
        "PATH": _PATH,
        "HOME": account.home,
        "USER": account.name,
        "LOGNAME": account.name,
        "SHELL": account.shell,
    }


def persons_environment() -> Mapping[str, str]:
    """The variables of who runs her own commands, but for what is Foresail's."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}


_SUBMITTERS: Final = ("SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST", "OMP_NUM_THREADS")
"""What whoever submits knows better."""


def job_environment(job: CommandJob, attempt: int) -> Mapping[str, str]:
    """What a job was given, and what it is told of itself, which wins."""
    told = job_variables(job, attempt)
    given = {name: told[name] for name in _SUBMITTERS} | dict(job.environment)
    return {**told, **given, **{name: told[name] for name in told if name not in _SUBMITTERS}}


def job_variables(job: CommandJob, attempt: int) -> Mapping[str, str]:
    """What an attempt of a job is told of itself; of its place in an array, its environment is."""
    host, cpus = host_name(), str(job.cpus)
    told = {
        "FORESAIL_JOB_ID": job.job_id,
        "FORESAIL_JOB_NAME": job.name,
        "FORESAIL_ATTEMPT": str(attempt),
        "FORESAIL_CPUS": cpus,
        "FORESAIL_TASKS": str(job.tasks),
        "OMP_NUM_THREADS": str(max(1, job.cpus // job.tasks)),
        "SLURM_JOB_ID": job.job_id,
        "SLURM_JOBID": job.job_id,
        "SLURM_JOB_NAME": job.name,
        "SLURM_JOB_USER": job.user,
        "SLURM_CPUS_ON_NODE": cpus,
        "SLURM_JOB_CPUS_PER_NODE": cpus,
        "SLURM_NTASKS": str(job.tasks),
        "SLURM_NPROCS": str(job.tasks),
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_NNODES": "1",
        "SLURM_JOB_NODELIST": host,
        "SLURM_NODELIST": host,
        "SLURMD_NODENAME": host,
        "SLURM_SUBMIT_DIR": job.directory,
        "SLURM_SUBMIT_HOST": host,
    }
    if job.cpus_per_task is not None:
        told["SLURM_CPUS_PER_TASK"] = str(job.cpus_per_task)
    if job.memory_bytes is not None:
        told["FORESAIL_MEMORY_BYTES"] = str(int(job.memory_bytes))
        told["SLURM_MEM_PER_NODE"] = str(int(job.memory_bytes) >> 20)  # MiB
    if job.gpus:
        told["SLURM_GPUS"] = told["SLURM_GPUS_ON_NODE"] = str(job.gpus)
    if "SLURM_ARRAY_TASK_ID" in job.environment:
        told["SLURM_ARRAY_JOB_ID"] = job.array_id
    if attempt > 1:
        told["SLURM_RESTART_COUNT"] = str(attempt - 1)
    return told
