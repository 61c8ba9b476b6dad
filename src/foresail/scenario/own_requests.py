"""Jobs with STRL of their own: read for their cluster, and refused where that is not kept to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from foresail.control.policy import Policy
from foresail.model.changing_nodes import with_later_nodes
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.model.event import NodeChange
from foresail.model.preference import PlacementOption

if TYPE_CHECKING:  # commands begin sooner without what only workloads need
    from foresail.strl.own_requests import RequestPlaces
    from foresail.traces.workload import Workload

_WHO_DOES = "tetrisched or 3sigma, or jobs without strl"


def places_of_requests(policy: Policy, cluster: Cluster) -> RequestPlaces | None:
    """Return the places that requests may name on a cluster; None if the policy takes none."""
    if not policy.scheduler.build().places_by_options:
        return None
    from foresail.strl.own_requests import RequestPlaces

    return RequestPlaces.on(cluster)


def require_places_by_options(policy: Policy, source: object) -> None:
    """A scheduler that would run jobs where their STRL does not let them is refused.

    Raises ``InputError`` if the policy's scheduler is one.
    """
    if not policy.scheduler.build().places_by_options:
        raise InputError(
            "this scheduler would run jobs where their own STRL does not let them",
            source=source,
            field="strl",
            value=policy.scheduler.text,
            expected=_WHO_DOES,
        )


def with_options(
    workload: Workload, cluster: Cluster, node_changes: Iterable[NodeChange] = ()
) -> Workload:
    """The workload with the requests of its jobs read.

    Raises ``InputError`` if one is wrong: names the job and what was expected there.

    Parameters
    ----------
    workload, cluster
        The jobs, and the nodes that there are at the beginning.
    node_changes
        What becomes of them: requests may name nodes that come later, and sets have these too.
    """
    from foresail.strl.own_requests import RequestPlaces, own_options

    places = RequestPlaces.on(with_later_nodes(cluster, node_changes))
    known: dict[tuple[str, int], tuple[PlacementOption, ...]] = {}
    options = {}
    asking = workload.jobs.filter(workload.jobs["strl"].is_not_null())
    columns = ("job_id", "strl", "tasks", "preferred", "value")
    for job_id, text, tasks, preferred, value in asking.select(columns).iter_rows():
        try:
            if workload.tasks is not None:
                raise InputError(
                    "a job of stages", field="strl", expected="a workload without a table of tasks"
                )
            for field, given in (("preferred", preferred), ("value", value)):
                if given is not None:
                    raise InputError(
                        "its STRL says that", field=field, value=given, expected="nothing"
                    )
            if (text, tasks) not in known:
                known[text, tasks] = own_options(text, tasks, places)
            options[job_id] = known[text, tasks]
        except InputError as error:
            raise error.placed(f"job {job_id}: ", workload.meta.source) from error
    return replace(workload, options=options)
