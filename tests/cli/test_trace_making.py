"""``foresail trace generate | filter | sample | fetch`` as people call them."""

import gzip
import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from foresail.cli.trace import app
from foresail.model.errors import ForesailError, InputError, UnknownNameError
from foresail.model.registry import find
from foresail.model.short_form import make_part, parameter_texts, part_of
from foresail.traces.fetching import Archive, Log, LogCatalogue
from foresail.traces.folder import read_folder
from foresail.traces.reading import read
from foresail_studies.generators.lublin import LublinParameters


def call(*arguments):
    """Output of a call that succeeds; raises the error of one that does not."""
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.swf.gz"
    call("generate", "lublin", "--jobs", 400, "--processors", 64, "--seed", 7, "-o", path)
    return path


def test_generate_an_swf_file(log):
    """The file is a log of so many jobs on such a machine."""
    workload = read(log)
    assert len(workload) == 400
    assert workload.meta.processors == 64


def test_generate_a_folder_from_another_log(log, tmp_path):
    """A generator takes its source as a setting, and a folder is written by default."""
    said = call(
        "generate", "slearn", "--set", f"source={log}", "--jobs", 50, "--output", tmp_path / "new"
    )
    assert "50 jobs" in said
    assert len(read_folder(tmp_path / "new")) == 50


def test_equal_seeds_give_equal_files(tmp_path):
    """Byte for byte."""
    for name in ("a.swf", "b.swf"):
        call("generate", "lublin", "--jobs", 20, "--seed", 3, "-o", tmp_path / name)
    assert (tmp_path / "a.swf").read_bytes() == (tmp_path / "b.swf").read_bytes()


def test_filter_tells_what_each_filter_touched(log, tmp_path):
    """Filters run in the order given, with their parameters, and are counted."""
    said = call(
        *("filter", log, tmp_path / "clean", "--with", "keep_users(users=[1,2])"),
        *("--with", "keep_first_weeks(weeks=1)", "--processors", 32),
    )
    cleaned = read_folder(tmp_path / "clean")
    assert set(cleaned.jobs["user"]) <= {"1", "2"}
    assert cleaned.meta.processors == 32
    for name, touched in cleaned.meta.filters:
        assert any(line.split() == [name, str(touched)] for line in said.splitlines())
    assert f"{len(cleaned)} jobs left of 400" in said


def test_sample(log, tmp_path):
    """Weeks, users or a fraction, exactly one of them."""
    call("sample", log, tmp_path / "weeks", "--weeks", 1)
    assert read_folder(tmp_path / "weeks").jobs["submit_seconds"].max() < 7 * 86400
    call("sample", log, tmp_path / "users.swf", "--users", 2, "--seed", 1)
    assert read(tmp_path / "users.swf").jobs["user"].n_unique() == 2
    call("sample", log, tmp_path / "part", "--fraction", 0.5)
    assert 150 < len(read_folder(tmp_path / "part")) < 250
    for wrong in ([], ["--weeks", 1, "--users", 1]):
        with pytest.raises(InputError, match="--fraction"):
            call("sample", log, tmp_path / "none", *wrong)


def test_lists():
    """Without a name the commands list what there is, with parameters and defaults."""
    assert "jobs=10000" in call("generate")
    assert "jobs=1000" in call("filter")
    listed = call("fetch")
    assert "KTH-SP2-1996-2.1-cln" in listed
    assert "Acknowledge" in listed


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["generate", "lublin"], "nowhere to write"),
        (["generate", "lublni", "-o", "x"], "lublin"),
        (["generate", "lublin", "-o", "x", "--set", "laod=1"], "'load'"),
        (["generate", "lublin", "-o", "x", "--set", "load"], "parameter=value"),
        (["generate", "lublin", "-o", "x", "--set", "load=heavy"], "heavy"),
        (["generate", "segment", "-o", "x"], "source="),
        (["filter", "LOG"], "nowhere to write"),
        (["filter", "LOG", "x"], "--with"),
        (["filter", "LOG", "x", "--with", "predictsm"], "predictsim"),
        (["filter", "LOG", "x", "--with", "keep users"], "keep_users"),
        (["filter", "LOG", "x", "--with", "keep_between(start=1e12)"], "no job"),
        (["fetch", "KTH"], "KTH-SP2-1996-2"),
    ],
)
def test_mistakes_are_explained_and_nothing_is_written(arguments, problem, log, tmp_path):
    """Each mistake gets a sentence that helps."""
    here = {"LOG": log, "x": tmp_path / "x"}
    with pytest.raises(ForesailError, match=problem):
        call(*(here.get(each, each) for each in arguments))
    assert not (tmp_path / "x").exists()


def test_settings_become_typed_parameters():
    """Text becomes numbers, none, choices and tuples."""
    made = make_part(find("generator", "lublin"), ["jobs=6", "load=none", "classes=both"])
    assert made.parameters == LublinParameters(jobs=6, load=None, classes="both")
    assert part_of("filter", " keep_users ( users = [a, b] ) ").parameters.users == ("a", "b")
    with pytest.raises(UnknownNameError, match="jobs"):
        make_part(find("generator", "lublin"), ["job=5"])


def test_parameters_are_shown_as_they_are_written():
    """What the list shows can be given back."""
    for family, name in (("generator", "lublin"), ("filter", "drop_flurries")):
        entry = find(family, name)
        assert make_part(entry, parameter_texts(entry)).parameters == entry.parameters()


@pytest.fixture
def archive(log, tmp_path, monkeypatch):
    """A catalogue of one log, served from this machine."""
    folder = tmp_path / "served" / "l_made"
    folder.mkdir(parents=True)
    (folder / "made.swf.gz").write_bytes(log.read_bytes())
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder.parent))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/"
    made = Log(
        name="made",
        path="l_made/made.swf.gz",
        system="made here",
        text_sha256=hashlib.sha256(gzip.decompress(log.read_bytes())).hexdigest(),
    )
    known = LogCatalogue(
        archive=Archive(name="here", address=address, terms="Be kind.", citation="nobody"),
        log=(made,),
    )
    monkeypatch.setattr("foresail.traces.fetching.catalogue", lambda: known)
    yield folder, address
    server.shutdown()
    thread.join()
    server.server_close()


def test_fetch(archive, tmp_path, log):
    """The log is fetched by name, verified and ready to read; the archive's terms are said."""
    said = call("fetch", "made", "--output", tmp_path / "got")
    assert "SHA-256" in said
    assert "Be kind." in said
    assert read(tmp_path / "got" / "made.swf.gz").jobs.equals(read(log).jobs)
    assert "was there" in call("fetch", "made", "--output", tmp_path / "got")


def test_fetch_from_another_address(archive, tmp_path):
    """A mirror's folder; with another content only if the user says so."""
    folder, address = archive
    call("fetch", "made", "--output", tmp_path / "one", "--from", f"{address}l_made/")
    other = gzip.compress(b"1 0 0 5 1 -1 -1 1 -1 -1 1 1 -1 -1 -1 -1 -1 -1\n")
    (folder / "other.swf.gz").write_bytes(other)
    arguments = ["fetch", "made", "--output", tmp_path / "two", "--from"]
    with pytest.raises(InputError, match="--unverified"):
        call(*arguments, f"{address}l_made/other.swf.gz")
    said = call(*arguments, f"{address}l_made/other.swf.gz", "--unverified")
    assert "NOT the catalogue's" in said
