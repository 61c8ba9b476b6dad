"""Price sources: built-in catalogues, users' files, public layouts, and what is fetched."""

import json
import os
import threading
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from foresail.cloud.prices import GIB
from foresail.cloud.prices_reading import Reference, load_histories, load_prices
from foresail.cloud.purchasing.resources import running_commitments
from foresail.cloud.sources.own_prices import WebPrices
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.registry import NoParameters
from shared import shared

HEADER = "instance_type,cores,memory_gib,on_demand,reserved_1y,transient,availability,currency,date"
ROW = "c4,4,16,0.2,0.12,0.06,0.97,EUR,2026-03-01"
DOCUMENT = """
name = "own"
currency = "EUR"
date = 2026-03-01
region = "north"

[[offer]]
instance_type = "c4"
cores = 4
memory_gib = 16
on_demand = 0.2
reserved_3y = 0.08
transient = 0.06
lifetime_cap_hours = 24

[sustained_use]
tiers = [1.0, 0.5]

[customised]
core_per_hour = 0.03
gib_per_hour = 0.005

[[discount]]
share = 0.1
instances = "c*"
options = ["reserved"]

[[commitment]]
instance = "c4"
count = 2
price_per_hour = 0.1
until = 2026-12-31
"""


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("name", "day", "types"),
    [
        ("thesis", date(2018, 12, 31), 7),
        ("ec2-2017", date(2017, 11, 30), 12),
        ("ec2-2024", date(2024, 4, 30), 16),
    ],
)
def test_built_in_catalogues_have_a_day(name, day, types):
    """Each says when its prices held, and is found by its name."""
    catalogue = load_prices(name)
    assert (catalogue.valid_on, len(catalogue.offers), catalogue.currency) == (day, types, "USD")


def test_an_unknown_name_gets_the_nearest():
    """Neither a catalogue nor a file: the error offers names."""
    with pytest.raises(UnknownNameError, match="thesis"):
        load_prices("thesys")


def test_a_table_of_ones_own(tmp_path):
    """A CSV gives an offer with what it says, and nothing else."""
    catalogue = load_prices(written(tmp_path, "own.csv", f"{HEADER}\n{ROW}\n"))
    (offer,) = catalogue.offers
    assert (catalogue.name, catalogue.currency) == ("own", "EUR")
    assert catalogue.valid_on == date(2026, 3, 1)
    assert offer.instance.memory_bytes == 16 * GIB
    assert offer.reserved_for(1).price_per_hour == 0.12
    assert offer.transient.availability == 0.97


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.2,", "0,", "line 2, field 'on_demand': not a price.*0.0"),
        ("0.2,", "-0.2,", "line 2, field 'on_demand': not a price.*-0.2"),
        ("0.2,", ",", "line 2, field 'on_demand': is missing"),
        ("0.2,", "cheap,", "line 2, field 'on_demand': not a number.*'cheap'"),
        ("0.12,", "-1,", "line 2, field 'reserved_1y': not a price"),
        ("0.97", "1.2", "line 2, field 'availability': out of range.*1.2.*from 0 to 1"),
        ("EUR", "", "field 'currency': is missing"),
        ("2026-03-01", "March", "line 2, field 'date': not a day.*'March'.*YYYY-MM-DD"),
        ("0.2,", "1e300,", r"line 2, field 'on_demand': not a price.*from 1e-09 to 1e\+09"),
        ("0.2,", "1e-300,", r"line 2, field 'on_demand': not a price.*from 1e-09 to 1e\+09"),
        ("0.12,", "1e300,", r"line 2, field 'reserved_1y': not a price.*to 1e\+09"),
        ("c4,4", "c4,0", "line 2, field 'cores': out of range"),
        ("on_demand", "on_demnd", "line 2, field 'on_demnd': no such field; expected on_demand"),
    ],
)
def test_a_wrong_cell_is_named(tmp_path, old, new, message):
    """File, line, field, value and what was expected."""
    text = f"{HEADER}\n{ROW}\n".replace(old, new, 1)
    with pytest.raises(InputError, match=message):
        load_prices(written(tmp_path, "own.csv", text), "table")


def test_rows_in_two_currencies_are_refused(tmp_path):
    """The second row's line is named."""
    text = f"{HEADER}\n{ROW}\n{ROW.replace('c4', 'c8').replace('EUR', 'USD')}\n"
    with pytest.raises(InputError, match="line 3, field 'currency': prices in mixed currencies"):
        load_prices(written(tmp_path, "own.csv", text))


def test_a_type_that_comes_twice_is_refused(tmp_path):
    """The line of the second one is named."""
    with pytest.raises(InputError, match=r"line 3, field 'instance_type': .*twice.*'c4'"):
        load_prices(written(tmp_path, "own.csv", f"{HEADER}\n{ROW}\n{ROW}\n"))


def test_a_table_without_rows_is_refused(tmp_path):
    """A header alone: no offer, rather than a field that is missing."""
    with pytest.raises(InputError, match=r"own\.csv: there is no offer in it"):
        load_prices(written(tmp_path, "own.csv", f"{HEADER}\n"))


def test_a_folder_is_refused_as_one(tmp_path):
    """A folder is said to be one, not to be an unknown name."""
    with pytest.raises(InputError, match="a folder; expected a file of prices"):
        load_prices(str(tmp_path))


def test_a_short_row_is_refused(tmp_path):
    """Another number of fields than the header, with its line."""
    with pytest.raises(InputError, match=r"line 2.*another number of fields"):
        load_prices(written(tmp_path, "own.csv", f"{HEADER}\nc4,4\n"))


def test_a_document_of_ones_own(tmp_path):
    """TOML has everything: rules, discounts, commitments; JSON reads alike."""
    catalogue = load_prices(written(tmp_path, "own.toml", DOCUMENT))
    offer = catalogue.find("c4", "north")
    assert offer.transient.lifetime_cap_hours == 24.0
    assert catalogue.sustained_use.tiers == (1.0, 0.5)
    assert catalogue.customised.markup == 1.05
    assert running_commitments(catalogue)[0].count > 1
    own = catalogue.after_discounts().find("c4")
    assert own.reserved_for(3).price_per_hour == pytest.approx(0.072)
    document = {
        "currency": "EUR",
        "date": "2026-03-01",
        "offer": [{"instance_type": "c4", "cores": 4, "memory_gib": 16, "on_demand": 0.2}],
    }
    alike = load_prices(written(tmp_path, "own.json", json.dumps(document)))
    assert alike.offers[0].on_demand_per_hour == 0.2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("on_demand = 0.2", "on_demand = 0", "'offer 1.on_demand': not a price"),
        ("share = 0.1", "share = 1.0", "'discount 1.share': out of range"),
        ('"reserved"', '"reservd"', "'discount 1.options': .*expected 'on-demand', 'res"),
        ("count = 2", "count = 1.5", "'commitment 1.count': .*expected a whole number"),
        ("count = 2", "count = true", "'commitment 1.count': .*expected a whole number"),
        ("until = 2026-12-31", 'until = "2026-13-01"', "'commitment 1.until': .*expected a day"),
        ("share = 0.1", 'share = "a"', "'discount 1.share': .*expected a number"),
        ("tiers = [1.0, 0.5]", "tiers = [1.0, 1.5]", "'sustained_use 1.tiers'"),
        ("[[discount]]", "[[discout]]", "'discout': no such field; expected discount"),
        ('name = "own"', "name = ", "not TOML"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, old, new, message):
    """The place within the document, the value and what was expected."""
    with pytest.raises(InputError, match=message):
        load_prices(written(tmp_path, "own.toml", DOCUMENT.replace(old, new, 1)))


def test_a_file_of_no_known_layout_is_refused(tmp_path):
    """The error shows how it begins and lists the layouts."""
    with pytest.raises(InputError, match=r"no price source.*'hello'.*table"):
        load_prices(written(tmp_path, "prices.txt", "hello\n"))


def test_public_table_of_reservations():
    """All 964 rows, with the standard and convertible plans of both terms."""
    path = shared("traces/ec2-prices/ec2-linux-ondemand-reserved-2017-11.csv.gz")
    catalogue = load_prices(str(path))
    assert (len(catalogue.offers), catalogue.valid_on) == (964, date(2017, 11, 1))
    offer = catalogue.find("m4.large", "us-east-1")
    assert (offer.on_demand_per_hour, len(offer.reserved)) == (0.1, 12)
    assert offer.reserved_for(3).price_per_hour == 0.038


def test_public_table_of_spot_prices():
    """Rows that are not sold, or doubled, are left out and counted."""
    path = shared("traces/ec2-prices/ec2-ondemand-spotavg-2024-04.csv.gz")
    catalogue = load_prices(str(path))
    assert sum(catalogue.repairs.values()) + len(catalogue.offers) == 13_767
    offer = catalogue.find("m5.large", "us-east-1")
    assert offer.transient.price_per_hour == 0.0384


def test_small_catalogues_agree_with_the_public_tables():
    """The prices that are built in are those of the files."""
    path = shared("traces/ec2-prices/ec2-linux-ondemand-reserved-2017-11.csv.gz")
    public = load_prices(str(path))
    for offer in load_prices("ec2-2017").offers:
        there = public.find(offer.instance.name, "us-east-1")
        assert there.on_demand_per_hour == offer.on_demand_per_hour
        plans = {(each.years, each.plan): each.price_per_hour for each in there.reserved}
        assert plans[1, "standard noUpfront"] == offer.reserved_for(1).price_per_hour
        assert plans[3, "standard noUpfront"] == offer.reserved_for(3).price_per_hour


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked += 1
        if self.path != "/own.csv":
            self.send_error(404)
            return
        body = f"{HEADER}\n{ROW}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.asked = 0
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_address_is_fetched_once_until_it_is_old(tmp_path, server, monkeypatch):
    """The second time the kept file serves; when it is a month old it is fetched anew."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = WebPrices(NoParameters())
    address = Reference(f"http://127.0.0.1:{server.server_port}/own.csv")
    assert source.recognises(address)
    for _ in range(2):
        assert source.catalogue(address).offers[0].instance.name == "c4"
    assert server.asked == 1
    (kept,) = tmp_path.rglob("own.csv")
    os.utime(kept, (0.0, 0.0))
    source.catalogue(address)
    assert server.asked == 2


def test_an_address_without_prices_is_an_error(tmp_path, server, monkeypatch):
    """Nothing is taken for prices that were not had, and nothing is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = WebPrices(NoParameters())
    with pytest.raises(InputError, match="the server answers 404"):
        source.catalogue(Reference(f"http://127.0.0.1:{server.server_port}/gone.csv"))
    assert not list(tmp_path.rglob("*.csv"))


def test_histories_are_not_in_a_catalogue(tmp_path):
    """A table of prices has no market histories, and the error says so."""
    with pytest.raises(InputError, match="recognises this file as market histories"):
        load_histories(written(tmp_path, "own.csv", f"{HEADER}\n{ROW}\n"))
