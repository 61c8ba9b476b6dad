"""Plug-in of Kubernetes: clusters that are observed, and those whose pods are bound from here."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foresail.live.cluster_plugin import RunContext
from foresail.model.adapter import Capabilities, ClusterAdapter, ClusterTrial
from foresail.model.errors import InputError
from foresail.model.registry import register

if TYPE_CHECKING:
    from foresail_kubernetes.connection import Access

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?", re.ASCII)

OBSERVES = Capabilities(
    changes_nodes=True, begins_jobs=True, brings_jobs=True, is_remote=True, decides_itself=True
)
DECIDES = Capabilities(
    places=True,
    preempts=True,
    changes_nodes=True,
    refuses_starts=True,
    begins_jobs=True,
    brings_jobs=True,
    is_remote=True,
)


@dataclass(frozen=True, slots=True)
class KubernetesParameters:
    """Parameters of a Kubernetes cluster.

    Parameters
    ----------
    config
        File that says where the API server is, and who asks. Empty: ``KUBECONFIG``, then the user's
        own, then the service account of the pod that this runs in.
    context
        Context of that file. Empty: the current one.
    decides
        Name by which pods ask for this scheduler (``schedulerName``, or the scheduling gate
        ``foresail.io/`` and that name): these are bound from here, or let go.
        Empty: nothing is changed.
    namespace
        Namespace of the lease by which of several replicas one decides.
    caps
        File (TOML) of what namespaces may say of their pods' worth and deadlines. Empty: what all
        may.
    """

    config: str = ""
    context: str = ""
    decides: str = ""
    namespace: str = "default"
    caps: str = ""


@register("cluster", "kubernetes", parameters=KubernetesParameters)
class KubernetesCluster:
    """A Kubernetes cluster, by its API: observed, or its pods of one scheduler name are bound."""

    def __init__(self, parameters: KubernetesParameters) -> None:
        self._parameters = parameters
        self.capabilities = DECIDES if parameters.decides else OBSERVES
        for field in ("decides", "namespace"):
            value = getattr(parameters, field)
            if value and not _NAME.fullmatch(value):
                raise InputError("is no name", field=field, value=value, expected="as of an object")
        from foresail_kubernetes.caps import Caps  # which loads no client

        self._caps = Caps.read(parameters.caps) if parameters.caps else Caps()

    @property
    def access(self) -> Access:
        """Return where the API server is said to be."""
        from foresail_kubernetes.connection import Access  # which loads the client

        return Access(self._parameters.config, self._parameters.context)

    def connect(self, run: RunContext) -> ClusterAdapter:
        """List pods and nodes; raises ``ConnectionError`` if the API server does not answer."""
        from foresail_kubernetes.mirror import Mirror
        from foresail_kubernetes.observing import KubernetesAdapter

        given, caps, mirror = self._parameters, self._caps, Mirror.begun(self.access)
        if not given.decides:
            return KubernetesAdapter(mirror, run.attempts, run.note, caps)
        from foresail_kubernetes.deciding import DecidingKubernetes
        from foresail_kubernetes.lease import Lease

        assert mirror.connection is not None
        holder, name = run.identity or str(uuid.uuid4()), f"foresail-{given.decides}"
        lease = Lease(mirror.connection, given.namespace, name, holder)
        return DecidingKubernetes(mirror, run.attempts, run.note, caps, given.decides, lease)

    def trial(self, folder: Path) -> ClusterTrial:  # noqa: ARG002
        """There is none: its jobs are pods of others."""
        raise InputError("nothing can be tried", field="cluster", value="kubernetes")
