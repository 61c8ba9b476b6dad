"""Plug-in of Slurm: clusters that are observed, and those whose jobs are started from here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from foresail.live.cluster_plugin import RunContext
from foresail.model.adapter import ClusterTrial
from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail_slurm.deciding import DecidingAdapter, Owned
from foresail_slurm.observing import SlurmAdapter


@dataclass(frozen=True, slots=True)
class SlurmParameters:
    """Parameters of a Slurm cluster.

    Commands find their Slurm by ``SLURM_CONF``, or by default.

    Parameters
    ----------
    decides
        Partitions, joined by ``+``, whose jobs are held and started from here, which takes an
        operator's rights. Empty: Slurm decides, and nothing is changed.
    accounts
        Accounts, joined by ``+``, whose jobs these are. Empty: all.
    """

    decides: str = ""
    accounts: str = ""


@register("cluster", "slurm", parameters=SlurmParameters)
class SlurmCluster:
    """A Slurm cluster, by its own commands: observed, or decided on."""

    def __init__(self, parameters: SlurmParameters) -> None:
        texts = parameters.decides, parameters.accounts
        self._owned = Owned(*(frozenset(filter(None, each.split("+"))) for each in texts))
        adapter = DecidingAdapter if self._owned.partitions else SlurmAdapter
        self.capabilities = adapter.capabilities
        if self._owned.accounts and not self._owned.partitions:
            raise InputError("is of use only with decides", field="accounts")

    def connect(self, run: RunContext) -> SlurmAdapter:
        """Look at the cluster; raises ``ConnectionError`` if it does not answer."""
        seen = run.attempts / "slurm-seen"
        decides = bool(self._owned.partitions)
        adapter = DecidingAdapter(seen, self._owned) if decides else SlurmAdapter(seen)
        adapter.keep_estimates, adapter.note = run.keep_estimates, run.note
        return adapter

    def trial(self, folder: Path) -> ClusterTrial:  # noqa: ARG002
        """There is none: its jobs are Slurm's own."""
        raise InputError("nothing can be tried", field="cluster", value="slurm")
