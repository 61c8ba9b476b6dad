"""Plug-in of Kubernetes: clusters whose pods are observed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foresail.live.cluster_plugin import RunContext
from foresail.model.adapter import Capabilities, ClusterAdapter, ClusterTrial
from foresail.model.errors import InputError
from foresail.model.registry import register

if TYPE_CHECKING:
    from foresail_kubernetes.connection import Access

OBSERVES = Capabilities(
    changes_nodes=True, begins_jobs=True, brings_jobs=True, is_remote=True, decides_itself=True
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
    """

    config: str = ""
    context: str = ""


@register("cluster", "kubernetes", parameters=KubernetesParameters)
class KubernetesCluster:
    """A Kubernetes cluster, by its API: pods and nodes are read, nothing is changed."""

    capabilities = OBSERVES

    def __init__(self, parameters: KubernetesParameters) -> None:
        self._parameters = parameters

    @property
    def access(self) -> Access:
        """Return where the API server is said to be."""
        from foresail_kubernetes.connection import Access  # which loads the client

        return Access(self._parameters.config, self._parameters.context)

    def connect(self, run: RunContext) -> ClusterAdapter:
        """List pods and nodes; raises ``ConnectionError`` if the API server does not answer."""
        from foresail_kubernetes.mirror import Mirror
        from foresail_kubernetes.observing import KubernetesAdapter

        return KubernetesAdapter(Mirror.begun(self.access), run.attempts, run.note)

    def trial(self, folder: Path) -> ClusterTrial:  # noqa: ARG002
        """There is none: its jobs are pods of others."""
        raise InputError("nothing can be tried", field="cluster", value="kubernetes")
