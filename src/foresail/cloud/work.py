"""How much work jobs have done by a moment."""

from __future__ import annotations

import numpy as np

from foresail.model.arrays import Floats


def work_until(moments: Floats, begin: Floats, end: Floats, amount: Floats) -> Floats:
    """Amounts times the time that they were held before each moment, summed over the jobs.

    A job holds its amount from ``begin`` to ``end``, in the unit of ``moments``; shape (jobs,)
    each.
    """
    return _since(moments, begin, amount) - _since(moments, end, amount)


def _since(moments: Floats, times: Floats, amount: Floats) -> Floats:
    """Amounts times the time since each job's own, summed over jobs whose time is past."""
    order = np.argsort(times, kind="stable")
    past = np.searchsorted(times[order], moments)
    count = np.concatenate([[0.0], np.cumsum(amount[order])])[past]
    moment = np.concatenate([[0.0], np.cumsum((amount * times)[order])])[past]
    return np.asarray(count * moments - moment)
