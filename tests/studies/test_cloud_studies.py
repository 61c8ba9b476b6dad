"""The studies of cloud capacity: claims are about cases that are run, and every task runs."""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from declared import require_claims_about_cases
from foresail.model.errors import InputError
from foresail_studies.purchasing.mix import Purchase
from foresail_studies.report import judge
from foresail_studies.results import StudyResults, carry_out_study
from foresail_studies.study import study_part
from foresail_studies.synchronization.models import COMPARED, BarrierFormula, Draw
from foresail_studies.transient.capacity import (
    DrawnPool,
    MarketPool,
    Stretch,
    TrailingWindows,
    target,
)
from foresail_studies.transient.service import Minutes
from foresail_studies.waiting import _shared as _waiting
from foresail_studies.waiting.logs import TraceRun
from foresail_studies.waiting.models import Simulation

WITH_PRICES = ("synchronization-models", "transient-capacity", "transient-windows")
NAMES = (
    *WITH_PRICES,
    "transient-service",
    "purchasing-mix",
    "waiting-thresholds",
    "waiting-trace-queues",
    "waiting-practice",
)


@pytest.fixture
def prices(tmp_path):
    """Spot prices of two markets for 40 days; each is too dear for some hours of each week."""
    rows = ["timestamp,az,instance_type,os,spot_price,on_demand_price"]
    first = datetime(2015, 3, 1, tzinfo=UTC)
    for kind, price, late in (("c3.xlarge", 0.21, 0), ("r3.large", 0.175, 50)):
        for hour in range(0, 40 * 24, 2):
            dear = (hour + late) % 168 < 4
            at = first + timedelta(hours=hour)
            spot = price * (2.0 if dear else 0.2 + 0.01 * (hour % 5))
            rows.append(f"{at.isoformat(sep=' ')},zone-a,{kind},Linux,{spot:.4f},{price}")
    path = tmp_path / "spot.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def settings_of(name, prices):
    """With all that a study can be given."""
    return [f'prices="{prices}"'] if name in WITH_PRICES else []


@pytest.mark.parametrize("name", NAMES)
def test_claims_are_about_cases(name, prices):
    """In both sizes, which differ, and say how long they take."""
    quick, full = (
        study_part(name, settings_of(name, prices), quick=quick).build() for quick in (True, False)
    )
    require_claims_about_cases(name, quick, full)


@pytest.mark.parametrize("name", ["synchronization-models", "transient-capacity"])
def test_without_prices_the_rest_is_run_and_the_page_says_so(name):
    """A note names what is left out, and no claim is about it."""
    study = study_part(name, [], quick=True).build()
    assert any(note.startswith("Left out for want of price histories") for note in study.notes)
    assert not any("spot" in group for group in study.groups)


def test_windows_need_prices(tmp_path):
    """The study says what it needs, before anything is run."""
    with pytest.raises(InputError, match="price histories"):
        study_part("transient-windows", [], quick=True).build()
    with pytest.raises(InputError, match="no such file"):
        study_part("transient-windows", [f'prices="{tmp_path / "none"}"'], quick=True).build()


def test_published_claims_on_synchronization_hold_by_formula(tmp_path):
    """All that chapter 4 says of its own formulas; what is drawn may differ."""
    study = study_part("synchronization-models", ["seeds=2", "runs=2"], quick=True).build()
    results = StudyResults(tmp_path)
    carry_out_study(
        study, results, lambda call, cases: ((case, call(case)) for case in cases), _ignored
    )
    runs = results.table(study)
    by_formula = [claim for claim in study.claims if "drawn" not in str(claim)]
    assert len(by_formula) > 20
    for claim in by_formula:
        assert judge(study, runs, claim).verdict == "holds", claim.published


def _ignored(case, measured):
    del case, measured


def test_formulas_of_synchronization():
    """Golden values of the spec: largest speed-ups, and speed-up for the money."""
    assert BarrierFormula(COMPARED["on demand"], 10).measure()["speedup"] == pytest.approx(
        4.776, abs=1e-3
    )
    assert BarrierFormula(COMPARED["flexible"], 8).measure()["ratio"] == pytest.approx(
        10.774, abs=1e-3
    )


def test_drawn_speeds_are_slower_than_expected_ones(prices):
    """The mean of work over speed is above work over mean speed; and markets have speeds."""
    expected = BarrierFormula(COMPARED["transient"], 4).measure()["seconds"]
    assert Draw(COMPARED["transient"], 4, 0.05, 20, 0).measure()["seconds"] > 1.3 * expected
    of_markets = Draw(COMPARED["transient"], 4, 0.05, 5, 0, str(prices)).measure()
    on_demand = BarrierFormula(COMPARED["on demand"], 4).measure()
    assert of_markets["seconds"] > on_demand["seconds"]


def test_more_nines_cost_more():
    """On drawn types, by either rule; and refined plans are no dearer."""
    rule, refined = (
        [DrawnPool(rule, nines, 200.0, 8, 1).measure() for nines in (2.0, 4.0)]
        for rule in ("published rule", "refined")
    )
    for found in (rule, refined):
        assert found[0]["on_demand_share"] < found[1]["on_demand_share"] < 1.0
    assert refined[1]["on_demand_share"] <= rule[1]["on_demand_share"]
    assert DrawnPool("refined", 15.0, 200.0, 2, 1).measure() == {"reached": 0.0}


def test_markets_are_planned_for(prices):
    """Two markets that are never down together keep one's capacity all the time."""
    found = MarketPool(Stretch(str(prices), 0, 2), "refined", 3.0, 28.0, 0.0).measure()
    assert found["reached"] == 1.0
    assert found["types"] == 2.0
    assert found["short_minutes"] == 0.0


def test_windows_are_held_to_what_follows(prices):
    """One market's machines are short whenever it is; both together never are."""
    stretch = Stretch(str(prices), 0, 2)
    one, both = (
        TrailingWindows(stretch, "refined", nines, 14.0, 14.0, 14.0).measure()
        for nines in (1.0, 3.0)
    )
    assert one["planned"] == both["planned"] == 1.0
    assert one["short_minutes"] > 0.0 == both["short_minutes"]
    assert one["on_demand_share"] < both["on_demand_share"]
    with pytest.raises(InputError, match="before the first plan"):
        TrailingWindows(stretch, "refined", 3.0, 14.0, 14.0, 99.0).measure()


def test_targets_have_the_digits_that_people_write():
    """Five nines are 0.99999."""
    assert [target(nines) for nines in (1.0, 2.0, 5.0)] == [0.9, 0.99, 0.99999]


def test_a_log_is_bought_for(tmp_path):
    """Shares of options add up, and no policy beats hindsight."""
    random = np.random.default_rng(3)
    arrivals = np.cumsum(random.exponential(1.0, 1500))
    rows = [f"{at:.4f},{random.exponential(3.0):.4f},{1 + i % 4}" for i, at in enumerate(arrivals)]
    log = tmp_path / "sample.csv"
    log.write_text("arrival_time,length,cpus\n" + "\n".join(rows) + "\n")
    with_them = Purchase(str(log), 1.0, 0, "amazon", 24.0).measure()
    without = Purchase(str(log), 1.0, 0, "amazon", None).measure()
    for found in (with_them, without):
        assert not any(math.isnan(value) for value in found.values())
        shares = [value for name, value in found.items() if name.startswith("optimum_")]
        assert sum(shares) == pytest.approx(1.0)
        assert found["ratio"] >= 1.0
        assert found["to_reserved"] < found["policy"]
    assert with_them["optimum"] < without["optimum"] < 1.0
    assert without["optimum_transient"] == 0.0 < with_them["optimum_transient"]
    assert with_them["optimum_scheduled-reserved"] == 0.0


def test_formulas_of_thresholds_are_measured():
    """All formulas; the cheapest fleet without waiting is the published one."""
    study = study_part("waiting-thresholds", ["jobs=2000", "seeds=1"], quick=True).build()
    formulas = [case for case in study.cases if not isinstance(case.task, Simulation)]
    found = {(case.group, case.system, case.x): case.task.measure() for case in formulas}
    last = {x: each["marginal_use"] for (_, _, x), each in found.items() if "marginal_use" in each}
    assert max(x for x, use in last.items() if use >= 0.4) == 108
    for (_, system, x), each in found.items():
        if system != "all wait" or x > 100:
            assert 0.0 < each["price"] < 2.0


def test_the_queue_has_an_order():
    """Shortest first, the same jobs wait less."""
    limits = (900.0, 180.0, 20_000, 0)
    first_come, shortest = (
        Simulation("ajw-t", 99, *limits, queue).measure()["mean_wait_seconds"]
        for queue in ("fcfs", "sjf")
    )
    assert shortest < first_come


def test_year_studies_run_a_task_of_each_group():
    """With half a day of the year."""
    for name in ("waiting-trace-queues", "waiting-practice"):
        study = study_part(name, ["jobs=20000", "seeds=1"], quick=True).build()
        first = {(case.group, case.system.split()[0]): case for case in study.cases}
        for case in first.values():
            found = case.task.measure()
            assert found["price"] > 0.0
            assert found["mean_wait_seconds"] >= 0.0


def test_all_waits_predicted_too_long_leave_nobody_waiting():
    """SWW is then NJW, on a trace as well."""
    trace = _waiting.Trace("", 20_000, 0)
    wrong = TraceRun(trace, 30.0, "sww", 3600.0, 0.0, waits_over=1.0).measure()
    nobody = TraceRun(trace, 30.0, "njw", 3600.0, 0.0).measure()
    assert wrong["mean_wait_seconds"] == 0.0
    assert wrong["total_cost"] == pytest.approx(nobody["total_cost"])


def test_a_service_whose_replicas_are_taken():
    """Failures and lost throughput come with revocations only; the daemon spares most failures."""
    found = {
        (system, rate): Minutes(system, 1.0, rate, 60.0, 3).measure()
        for system in ("without", "with the daemon")
        for rate in (0.0, 6.0)
    }
    for (_, rate), measured in found.items():
        assert (measured["failed"] > 0.0) == (rate > 0.0)
        assert (
            measured["throughput_kept"] == 1.0 if rate == 0.0 else measured["throughput_kept"] < 1.0
        )
        assert 0.0 < measured["latency_seconds"] < measured["p95_latency_seconds"]
    spared = found["with the daemon", 6.0]["failed"]
    assert 2 * spared < found["without", 6.0]["failed"]
