"""GPUs as a resource: priced, planned, reserved and rented; and amounts as machines hold them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.cloud.prices import GIB, InstanceType, Offer, Reserved
from foresail.cloud.prices_reading import load_prices
from foresail.cloud.purchasing.demand import bought_jobs
from foresail.cloud.purchasing.mix import MixRequest, mix
from foresail.cloud.purchasing.offline import OfflineSettings
from foresail.cloud.purchasing.resources import (
    Amount,
    gpu_ratios,
    machines_for,
    resources_of,
    sizes_of,
)
from foresail.cloud.purchasing.terms import PurchaseTerms, resource_prices
from foresail.model.errors import InputError
from foresail.traces.filtering import FilterChoice, apply_filters
from foresail_studies.purchasing.practice import (
    fleets_of,
    pieces_of,
    place,
    practise,
    rent_per_hour,
    train,
)
from foresail_studies.purchasing.retired_offers import published_terms
from made_workloads import hourly_workload

THESIS = load_prices("thesis")
HOUR = 3600.0


def offer(name, cores, gib, gpus, price):
    return Offer(
        InstanceType(name, "any", "any", cores, gib * GIB, gpus), price, (Reserved(3, 0.4 * price),)
    )


PRICES = replace(
    load_prices("ec2-2017"),
    offers=(
        offer("c4", 4, 8.0, 0, 0.10),
        offer("m4", 4, 16.0, 0, 0.12),
        offer("g1", 8, 32.0, 1, 1.24),
        offer("g4", 32, 128.0, 4, 4.96),
        offer("p8", 64, 256.0, 8, 16.0),
    ),
)
"""A core costs 0.02 and a GiB 0.0025, so that a GPU of g1 and g4 costs 1."""


def test_a_gpu_costs_what_its_machine_costs_beyond_cores_and_memory():
    """The cheapest of three types; cores and memory are priced by the types without."""
    prices = resource_prices(PRICES)
    assert prices.core_per_hour == pytest.approx(0.02)
    assert prices.gib_per_hour == pytest.approx(0.0025)
    assert prices.gpu_per_hour == pytest.approx(1.24 - 8 * 0.02 - 32 * 0.0025)
    assert resource_prices(THESIS).gpu_per_hour is None


def test_gpus_are_planned_for_like_cores():
    """Two GPUs all the time and one that is seldom used: two are reserved, one is rented."""
    log = hourly_workload([0.0, 0.0], [8760.0, 500.0], [2, 1], gpus_per_task=[1.0, 1.0])
    report = mix(log, PRICES, MixRequest("microsoft"))
    assert [plan.resource for plan in report.plans] == ["cores", "GPUs"]
    assert report.counted == "GPUs"
    gpus = report.plans[1]
    assert gpus.by_option("used_hours")["reserved-3y"] == pytest.approx(3 * 2 * 8760.0)
    assert gpus.by_option("used_hours")["on-demand"] == pytest.approx(3 * 500.0)
    core = 0.02 + 4.0 * 0.0025
    assert report.costs["cost"][0] == pytest.approx(3 * (2 * 8760.0 + 500.0) * (1.0 + core))


def test_jobs_without_gpus_are_planned_as_before():
    """Types with GPUs on sale change nothing for them."""
    log = hourly_workload([0.0], [8760.0], [3])
    plain = replace(PRICES, offers=PRICES.offers[:2])
    request = MixRequest("microsoft")
    assert mix(log, PRICES, request).costs.equals(mix(log, plain, request).costs)


@pytest.mark.parametrize(
    ("offers", "problem"),
    [
        (PRICES.offers[:2], "no machine with GPUs is on sale.*1 of 2 jobs ask for GPUs.*drop_gpus"),
        (PRICES.offers[2:], "no machine without GPUs is on sale"),
        (
            (*PRICES.offers[:2], offer("cheap", 8, 32.0, 1, 0.2)),
            "cost no more than their cores and memory",
        ),
    ],
    ids=["none", "only", "cheap"],
)
def test_prices_without_gpus_are_refused(offers, problem):
    """With how many jobs ask for some, and what to do."""
    log = hourly_workload([0.0, 1.0], [2.0, 2.0], [1, 1], gpus_per_task=[0.5, 0.0])
    with pytest.raises(InputError, match=problem):
        mix(log, replace(PRICES, offers=offers), MixRequest("microsoft"))
    without = apply_filters(log, [FilterChoice("drop_gpus")])
    assert len(without) == 1
    assert mix(without, PRICES, MixRequest("microsoft")).counted == "cores"


def test_machines_with_gpus_come_apart_and_are_rented_by_them():
    """Six tasks of a GPU: the cheapest that hold them; a task of 16 cores needs a larger one."""
    sizes, prices = sizes_of(PRICES), resource_prices(PRICES)
    jobs = bought_jobs(
        hourly_workload(
            [0.0] * 4,
            [1.0] * 4,
            [6, 1, 12, 1],
            cpus_per_task=[1.0, 16.0, 1.0, 4.0],
            gpus_per_task=[1.0, 1.0, 1.0, 0.0],
        )
    )
    pieces = pieces_of(jobs, sizes)
    assert pieces.together.tolist() == [6, 1, 8, 1]
    rent = rent_per_hour(pieces, sizes, prices, 1.05)
    assert rent == pytest.approx([16.0, 4.96, 16.0 + 4.96, 0.12])


def test_a_task_that_no_machine_holds_is_charged_for_several():
    """Ten GPUs at once: as many machines as they fill; the answer counts such jobs."""
    log = hourly_workload([0.0, 0.0], [5.0, 5.0], [1, 1], gpus_per_task=[10.0, 1.0])
    sizes = sizes_of(PRICES)
    rent = rent_per_hour(pieces_of(bought_jobs(log), sizes), sizes, resource_prices(PRICES), None)
    assert rent == pytest.approx([10 * 1.24, 1.24])
    assert mix(log, PRICES, MixRequest("microsoft")).spread == 1


def test_amounts_become_machines_with_gpus_first():
    """Nine GPUs with eight cores each: two of four and one of one; other cores are plain."""
    amount = Amount(cores=80.0, gib=320.0, gpus=9.0, cores_per_gpu=8.0, gib_per_gpu=32.0)
    found = machines_for(amount, "reserved-3y", 0.4, sizes_of(PRICES))
    assert [(m.instance.name, m.count) for m in found] == [("g4", 2), ("g1", 1), ("m4", 2)]
    # With 16 cores to a GPU half of each machine's GPUs would idle: they hold half as many.
    wide = Amount(cores=144.0, gib=288.0, gpus=9.0, cores_per_gpu=16.0, gib_per_gpu=32.0)
    assert [
        (m.instance.name, m.count) for m in machines_for(wide, "reserved-3y", 0.4, sizes_of(PRICES))
    ] == [("g4", 4), ("g1", 2)]


def test_jobs_share_reserved_gpus():
    """Four quarters fit on one GPU; a fifth does not, nor does a job without GPUs go there."""
    log = hourly_workload(
        [0.0] * 6, [2.0] * 6, [1] * 6, gpus_per_task=[0.25, 0.25, 0.25, 0.25, 0.25, 0.0]
    )
    jobs = bought_jobs(log)
    held = machines_for(Amount(8.0, 32.0, 1.0, 8.0, 32.0), "reserved-3y", 0.4, sizes_of(PRICES))
    placed = place(jobs, fleets_of(held), jobs.hours, 0.0)
    assert placed.fleet.tolist() == [0, 0, 0, 0, -1, -1]
    assert not placed.cut.any()


def test_the_policy_reserves_and_rents_gpus():
    """A steady demand for GPUs is reserved after training, and served from there."""
    count = 400
    log = hourly_workload(
        np.arange(count) * 24.0, [24.0] * count, [1] * count, gpus_per_task=[1.0] * count
    )
    request, training_hours = MixRequest("microsoft"), 100 * 24.0
    jobs = bought_jobs(log).between(0.0, training_hours)
    reserved = train(jobs, PRICES, published_terms(PRICES, request), request.settings)
    assert {each.instance.name for each in reserved} == {"g1"}
    outcome, _ = practise(log, PRICES, request, training_hours)
    assert outcome.cost == pytest.approx(0.4 * outcome.all_on_demand_cost, rel=1e-6)


def test_a_job_holds_the_part_of_a_machine_that_it_fills():
    """A core with 8 GiB fills half of an m4; a customised machine has its own size for 5 % more."""
    log = hourly_workload(
        [0.0, 0.0], [1.0, 1.0], [1, 1], memory_bytes_per_task=[8.0 * GIB, 1.0 * GIB]
    )
    jobs = bought_jobs(log)
    cores, gib = resources_of(jobs, PRICES, "of-machines")
    assert cores.units.tolist() == [2.0, 1.0]
    assert gib.units.tolist() == [8.0, 2.0]
    own = resources_of(jobs, PRICES, "of-machines", customised_markup=1.05)
    assert own[0].units.tolist() == [1.05, 1.05]
    assert own[1].units == pytest.approx([8.4, 1.05])
    assert own[0].standard_work == pytest.approx(3.0 / 2.1)
    apart = resources_of(jobs, PRICES)
    assert apart[0].units.tolist() == [1.0, 1.0]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 8), st.floats(0.5, 64.0)), min_size=1, max_size=8))
def test_parts_of_machines_cost_no_less_than_amounts_and_customised_ones_no_more(drawn):
    """Whatever jobs ask for; and they hold at least that."""
    cores = [c for c, _ in drawn]
    log = hourly_workload(
        [0.0] * len(drawn),
        [1.0] * len(drawn),
        [1] * len(drawn),
        cpus_per_task=[float(c) for c in cores],
        memory_bytes_per_task=[gib * GIB for _, gib in drawn],
    )
    jobs = bought_jobs(log)

    def cost(resources):
        return sum(each.units @ jobs.hours * each.per_hour for each in resources)

    apart = resources_of(jobs, PRICES)
    parts = resources_of(jobs, PRICES, "of-machines")
    own = resources_of(jobs, PRICES, "of-machines", 1.05)
    assert cost(apart) <= cost(own) + 1e-9
    assert cost(own) <= cost(parts) + 1e-9
    assert (parts[0].units >= jobs.cores - 1e-9).all()
    memory = parts[1].units if len(parts) == 2 else 4.0 * parts[0].units
    assert (memory >= jobs.gib - 1e-9).all()


def test_customised_machines_lower_the_optimum_of_jobs_that_waste_memory():
    """In parts of machines; in any amounts they cannot."""
    size = 200
    log = hourly_workload(
        np.arange(size) * 4.0,
        [3.0] * size,
        [1] * size,
        memory_bytes_per_task=[(1.0 if at % 2 else 8.0) * GIB for at in range(size)],
    )
    share = {
        (provider, amounts): mix(
            log,
            THESIS,
            MixRequest(provider, settings=OfflineSettings(slot_hours=24.0, amounts=amounts)),
        ).share("optimum")
        for provider in ("google", "google-customised")
        for amounts in ("any", "of-machines")
    }
    assert share["google", "any"] == pytest.approx(share["google-customised", "any"])
    assert share["google-customised", "of-machines"] < 0.9 * share["google", "of-machines"]


def test_ratios_are_of_the_jobs_that_ask_for_gpus():
    """Weighted by the time that they run; 4 GiB to a core where the log does not know."""
    log = hourly_workload(
        [0.0, 0.0, 0.0],
        [1.0, 3.0, 50.0],
        [1, 1, 9],
        cpus_per_task=[4.0, 8.0, 1.0],
        gpus_per_task=[1.0, 1.0, 0.0],
    )
    jobs = bought_jobs(log)
    assert gpu_ratios(jobs, resources_of(jobs, PRICES)) == (7.0, 28.0)
    assert gpu_ratios(jobs, ()) == (0.0, 0.0)
    assert PurchaseTerms().customised_markup is None
