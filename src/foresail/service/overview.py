"""What is told of all jobs together, as it was not long ago: counts, judgements, the use made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from foresail.control.loop import Controller
from foresail.service.cluster_use import UseOverTime, use_over_time
from foresail.service.lately import Lately, slowly
from foresail.service.picture import Gallery
from foresail.service.store.protocol import Store

_MOST_SPANS: Final = 200_000
_LEAST_SECONDS: Final = 600.0
_MOST_USES: Final = 50


class Overview:
    """Answers that take a look at all jobs, which no call waits for that others have asked before.

    Parameters
    ----------
    store, gallery
        Where jobs stand.
    now
        Tells the time.
    """

    def __init__(self, store: Store, gallery: Gallery, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self.by_state = Lately(lambda: slowly(store.counts))
        self.by_reason: Lately[Mapping[str, int]] = Lately(
            lambda: gallery.ask(lambda controller, _: _by_reason(controller))
        )
        """How many jobs are in each state, and wait for which reason."""
        self.judged_runtimes = Lately(lambda: slowly(store.judged_runtimes))
        self.judged_starts = Lately(lambda: slowly(store.judged_forecasts))
        """How what was told has held."""
        self._uses: dict[tuple[float, int], Lately[UseOverTime]] = {}

    async def use(self, hours: float, bins: int) -> UseOverTime:
        """How the cluster was used over the last hours; of a young service, as long as it was."""
        use = self._uses.get((hours, bins))
        if use is None:
            if len(self._uses) >= _MOST_USES:
                self._uses.clear()
            use = self._uses[hours, bins] = Lately(lambda: slowly(self._use, hours, bins))
        return await use.get()

    def _use(self, hours: float, bins: int) -> UseOverTime:
        now = self._now()
        begin = now - 3600.0 * hours
        spans = self._store.spans(begin, _MOST_SPANS)
        if len(spans) < _MOST_SPANS:  # of a young service, no more than there has been
            first = min((each.submit_seconds for each in spans), default=now)
            begin = max(begin, min(first, now - _LEAST_SECONDS))
        return use_over_time(spans, begin, now, bins)


def _by_reason(controller: Controller) -> Mapping[str, int]:
    return Counter(str(reason.code) for reason in controller.reasons().values())
