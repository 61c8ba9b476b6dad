"""``foresail hold``: keep a waiting job from starting."""

from foresail.cli._service import for_each_job

app = for_each_job(
    "Hold jobs: what waits does not start until it is released.",
    lambda client, job: client.hold(job),
)
