"""``foresail release``: let a held job start again."""

from foresail.cli._service import for_each_job

app = for_each_job(
    "Release held jobs: they start when their turn comes.", lambda client, job: client.release(job)
)
