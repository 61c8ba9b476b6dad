"""Records of distributions: what they say, and what is refused."""

import pytest

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.records import from_record
from foresail.distributions.truncated_normal import TruncatedNormal
from foresail.model.errors import InputError, UnknownNameError

LOG_NORMAL = {"version": 1, "kind": "log-normal", "mu": 1, "sigma": 1.0, "cap": None, "elapsed": 0}
EMPIRICAL = {"version": 1, "kind": "empirical", "values": [1.0, 2.0], "probabilities": [0.5, 0.5]}


@pytest.mark.parametrize(
    ("fields", "belief"),
    [
        ({"kind": "point", "value": 7}, Point(7.0)),
        ({"kind": "uniform", "low": 0.5, "high": 1}, Uniform(0.5, 1.0)),
        (
            {"kind": "truncated-normal", "mu": 5.0, "sigma": 2.0, "low": 1.0},
            TruncatedNormal(5, 2, 1),
        ),
        (LOG_NORMAL, LogNormal(1.0, 1.0)),
        ({**LOG_NORMAL, "cap": 9.0, "elapsed": 2.0}, LogNormal(1.0, 1.0, 9.0, 2.0)),
        ({**EMPIRICAL, "probabilities": [1, 3]}, Empirical([1.0, 2.0], [1.0, 3.0])),
        ({"kind": "quantiles", "levels": [0, 1], "values": [2, 4]}, Quantiles([0, 1], [2.0, 4.0])),
    ],
)
def test_each_kind_is_read(fields, belief):
    """A record names what its kind is made of."""
    read = from_record({"version": 1, **fields})
    assert type(read) is type(belief)
    levels = (0.0, 0.3, 1.0)
    assert [read.quantile(p) for p in levels] == [belief.quantile(p) for p in levels]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ([], None),
        ({"kind": "point", "value": 1.0}, "version"),
        ({"version": 2, "kind": "point", "value": 1.0}, "version"),
        ({"version": True, "kind": "point", "value": 1.0}, "version"),
        ({"version": 1}, "kind"),
        ({"version": 1, "kind": 3}, "kind"),
        ({"version": 1, "kind": "point"}, "value"),
        ({"version": 1, "kind": "point", "value": "1"}, "value"),
        ({"version": 1, "kind": "point", "value": True}, "value"),
        ({"version": 1, "kind": "point", "value": float("nan")}, "value"),
        ({"version": 1, "kind": "point", "value": 10**400}, "value"),
        ({"version": 1, "kind": "point", "value": -1.0}, "value"),
        ({"version": 1, "kind": "point", "value": 1.0, "low": 0.0}, "low"),
        ({"version": 1, "kind": "uniform", "low": 3.0, "high": 1.0}, "low"),
        ({**LOG_NORMAL, "sigma": -1.0}, "sigma"),
        ({**LOG_NORMAL, "elapsed": -1.0}, "elapsed"),
        ({**EMPIRICAL, "values": [1.0]}, "values"),
        ({**EMPIRICAL, "values": 5}, "values"),
        ({**EMPIRICAL, "values": [1.0, None]}, "values"),
        ({**EMPIRICAL, "probabilities": [1.0, -0.5]}, "probabilities"),
        ({"version": 1, "kind": "quantiles", "levels": [0.1, 1.0], "values": [0, 1]}, "levels"),
    ],
)
def test_bad_records_are_refused_by_the_name_of_the_field(record, field):
    """Missing, of the wrong kind, impossible, unknown or too new."""
    with pytest.raises(InputError) as caught:
        from_record(record, source="state.json")
    assert caught.value.field == field
    assert caught.value.source == "state.json"


def test_unknown_kinds_are_refused_with_the_nearest():
    """As unknown names are everywhere."""
    with pytest.raises(UnknownNameError, match="did you mean 'uniform'"):
        from_record({"version": 1, "kind": "unifrom", "low": 0.0, "high": 1.0})
