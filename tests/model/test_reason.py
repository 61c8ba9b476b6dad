"""Reasons: several of one kind, kept in columns, are each job's own."""

from hypothesis import given
from hypothesis import strategies as st

from foresail.model.decision import AlikeReasons, Reason, ReasonCode, alike

numbers = st.floats(0.0, 1e6)
reasons = st.one_of(
    st.builds(
        lambda cpus, free: Reason(ReasonCode.NO_ROOM, {"cpus": cpus, "free": free}),
        numbers,
        numbers,
    ),
    st.builds(lambda ahead: Reason(ReasonCode.BEHIND, {"ahead": ahead}), numbers),
    st.builds(lambda job: Reason(ReasonCode.DEPENDENCY, {"after": job}), st.text(max_size=3)),
    st.just(Reason(ReasonCode.DRAINING)),
)


@given(st.dictionaries(st.text(max_size=3), reasons, max_size=9))
def test_groups_hold_every_reason_once(of_jobs):
    groups = alike(of_jobs)
    told = [item for group in groups for item in group.items()]
    assert dict(told) == of_jobs
    assert len(told) == len(of_jobs)
    assert len({group.code for group in groups}) == len(groups)


def test_what_is_common_and_what_is_a_jobs_own_are_one_reason():
    group = AlikeReasons(ReasonCode.NO_ROOM, ("a", "b"), {"free": 1.0}, {"cpus": (2.0, 3.0)})
    assert group.reason("b") == Reason(ReasonCode.NO_ROOM, {"cpus": 3.0, "free": 1.0})
    assert group.reason("c") is None


def test_one_of_something_is_said_as_one():
    """Nouns and verbs go by their numbers, as in all sentences."""
    said = [
        Reason(ReasonCode.NO_ROOM, {"cpus": 1.0, "free": 0.0}).sentence,
        Reason(ReasonCode.NO_ROOM, {"cpus": 4, "free": 1.0}).sentence,
        Reason(ReasonCode.NOT_CHOSEN, {"ahead": 1.0}).sentence,
        Reason(ReasonCode.BEHIND, {"ahead": 2.0}).sentence,
    ]
    assert said == [
        "needs 1 cpu and 0 are free",
        "needs 4 cpus and 1 is free",
        "not chosen by the scheduler; 1 job is ahead of it",
        "2 jobs are ahead of it and no job is backfilled",
    ]


def test_a_job_that_fits_nowhere_is_not_said_to_ask_for_more_than_there_is():
    """A task wider than a node, or with more memory, is too wide for a cluster with cpus enough."""
    wide = Reason(ReasonCode.TOO_WIDE, {"cpus": 5.0, "total": 4.0}).sentence
    assert wide == "asks for 5 cpus and the cluster has 4"
    placeless = Reason(ReasonCode.TOO_WIDE, {"cpus": 64.0, "total": 192.0}).sentence
    assert "asks for 64 cpus; there are 192, but even free they have no room" in placeless


def test_the_first_of_the_queue_is_not_said_to_be_behind_none():
    """Room can be kept for one further back, as by a guard; then no job is ahead."""
    told = Reason(ReasonCode.BEHIND, {"ahead": 0}).sentence
    assert told == "what is free is kept for another job, which goes before its turn"
