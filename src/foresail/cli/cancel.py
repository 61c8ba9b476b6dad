"""``foresail cancel``: withdraw a waiting job, or stop a running one."""

from foresail.cli._service import for_each_job

app = for_each_job(
    "Cancel jobs: withdrawn if they wait, stopped if they run.",
    lambda client, job: client.cancel(job),
)
