"""Records of distributions: the way there and back, and what is refused."""

import json

import pytest
from hypothesis import given

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.histogram import Histogram
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.mixture import Mixture
from foresail.distributions.records import from_record, to_record
from foresail.model.errors import InputError, UnknownNameError
from made_distributions import DISTRIBUTIONS

AT = [0.0, 1.0, 30.0, 1e3, 1e5]


@given(DISTRIBUTIONS)
def test_there_and_back_is_exact(belief):
    """Through JSON text; the same numbers to the last bit."""
    record = to_record(belief)
    back = from_record(json.loads(json.dumps(record, allow_nan=False)))
    assert type(back) is type(belief)
    assert to_record(back) == record
    assert back.survival(AT).tolist() == belief.survival(AT).tolist()
    assert [back.quantile(p) for p in (0.0, 0.3, 1.0)] == [
        belief.quantile(p) for p in (0.0, 0.3, 1.0)
    ]


HISTOGRAM = to_record(Histogram.of([1.0, 2.0, 3.0], 2))
MIXTURE = to_record(Mixture([Point(1.0), Uniform(0.0, 1.0)]))
NESTED = {"kind": "point", "value": 1.0}
for _ in range(40):
    NESTED = {"kind": "shifted", "inner": NESTED, "amount": 0.0}


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
        ({**to_record(LogNormal(1.0, 1.0)), "sigma": -1.0}, "sigma"),
        ({**to_record(LogNormal(1.0, 1.0)), "elapsed": -1.0}, "elapsed"),
        ({**to_record(Empirical([1.0, 2.0])), "values": [1.0]}, "values"),
        ({**to_record(Empirical([1.0, 2.0])), "values": 5}, "values"),
        ({**to_record(Empirical([1.0, 2.0])), "values": [1.0, None]}, "values"),
        ({**to_record(Empirical([1.0, 2.0])), "probabilities": [1.0, -0.5]}, "probabilities"),
        ({"version": 1, "kind": "quantiles", "levels": [0.1, 1.0], "values": [0, 1]}, "levels"),
        ({**HISTOGRAM, "bins": 0}, "bins"),
        ({**HISTOGRAM, "bins": 1}, "centroids"),
        ({**HISTOGRAM, "bins": 2.5}, "bins"),
        ({**HISTOGRAM, "bins": 1e300}, "bins"),
        ({**HISTOGRAM, "counts": [1.0]}, "counts"),
        ({**HISTOGRAM, "counts": [1.0, 7.0]}, "counts"),
        ({**HISTOGRAM, "centroids": [3.0, 1.0]}, "centroids"),
        ({**HISTOGRAM, "merged": 1}, "merged"),
        ({**HISTOGRAM, "elapsed": 5.0}, "elapsed"),
        ({**MIXTURE, "components": {}}, "components"),
        ({**MIXTURE, "components": [3]}, "components.0"),
        ({**MIXTURE, "components": [{"kind": "point"}, NESTED]}, "components.0.value"),
        ({**MIXTURE, "weights": [1.0]}, "weights"),
        ({**NESTED, "version": 1}, ".".join(["inner"] * 33) + ".kind"),
    ],
)
def test_bad_records_are_refused_by_the_name_of_the_field(record, field):
    """Missing, of the wrong kind, impossible, unknown, too new or too deep."""
    with pytest.raises(InputError) as caught:
        from_record(record, source="state.json")
    assert caught.value.field == field
    assert caught.value.source == "state.json"


def test_unknown_kinds_are_refused_with_the_nearest():
    """As unknown names are everywhere."""
    with pytest.raises(UnknownNameError, match="did you mean 'uniform'"):
        from_record({"version": 1, "kind": "unifrom", "low": 0.0, "high": 1.0})


def test_kinds_without_records_are_refused():
    """A foreign distribution has no record."""
    with pytest.raises(TypeError, match="has no record"):
        to_record(object())
