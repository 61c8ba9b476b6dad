"""Fetching from a local server that supports ranges, breaks off, lies, and moves things."""

import gzip
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from foresail.model.errors import InputError, UnknownNameError
from foresail.traces.fetching import Log, RetryLimits, catalogue, fetch

TEXT = b"; MaxProcs: 4\n" + b"".join(
    f"{n} {n * 7919 % 100003} -1 5 1 -1 -1 1 60 -1 1 1 -1 -1 -1 -1 -1 -1\n".encode()
    for n in range(20_000)
)
BODY = gzip.compress(TEXT, mtime=0)
LOG = Log(
    name="toy",
    path="l_toy/toy.swf.gz",
    system="a toy",
    text_sha256=hashlib.sha256(TEXT).hexdigest(),
)
UNKNOWN_DIGEST = LOG.model_copy(update={"text_sha256": None})
QUICK = RetryLimits(attempts=3, pause_seconds=0.001, timeout_seconds=5.0)


class Server:
    """A server of one file; what it does wrong is set by the test."""

    def __init__(self):
        self.body = BODY
        self.statuses = []
        self.cut_after = []
        self.ranges_supported = True
        self.asked = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.base = f"http://127.0.0.1:{self._server.server_port}/"

    def answer(self, request):
        span = request.headers.get("Range")
        self.asked.append((request.path, span))
        status = self.statuses.pop(0) if self.statuses else 200
        if status != 200:
            request.send_response(status)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        start = 0
        if span and self.ranges_supported:
            start = int(span.removeprefix("bytes=").removesuffix("-"))
            if start >= len(self.body):
                request.send_response(416)
                request.send_header("Content-Range", f"bytes */{len(self.body)}")
                request.send_header("Content-Length", "0")
                request.end_headers()
                return
            request.send_response(206)
            last = len(self.body) - 1
            request.send_header("Content-Range", f"bytes {start}-{last}/{len(self.body)}")
        else:
            request.send_response(200)
        body = self.body[start:]
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if self.cut_after:
            body = body[: self.cut_after.pop(0)]
            request.wfile.write(body)
            request.close_connection = True
            return
        request.wfile.write(body)

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_log_is_downloaded_and_verified(server, tmp_path):
    """The file arrives byte for byte, under its name, with progress up to its size."""
    seen = []
    fetched = fetch(
        LOG, tmp_path / "new", server.base, progress=lambda *step: seen.append(step), patience=QUICK
    )
    assert fetched.path.read_bytes() == BODY
    assert fetched.verified
    assert fetched.downloaded
    assert seen[-1] == (len(BODY), len(BODY))
    assert files(tmp_path / "new") == ["toy.swf.gz"]
    assert server.asked == [("/toy.swf.gz", None)]


def test_a_log_that_is_there_is_not_downloaded_again(server, tmp_path):
    """The second call asks the server nothing."""
    fetch(LOG, tmp_path, server.base, patience=QUICK)
    again = fetch(LOG, tmp_path, server.base, patience=QUICK)
    assert again.verified
    assert not again.downloaded
    assert len(server.asked) == 1


def test_a_broken_connection_is_resumed(server, tmp_path):
    """After breaks in the middle the next requests ask for the rest only."""
    server.cut_after = [5000, 700]
    fetched = fetch(LOG, tmp_path, server.base, patience=QUICK)
    assert fetched.path.read_bytes() == BODY
    assert [span for _, span in server.asked] == [None, "bytes=5000-", "bytes=5700-"]


def test_giving_up_keeps_what_came_and_the_next_call_resumes(server, tmp_path):
    """A server that stops answering leaves a .part; a later call goes on from it."""
    server.cut_after = [4000]
    server.statuses = [200, 503, 503, 503]
    with pytest.raises(InputError, match=r"3 times in a row.*503"):
        fetch(LOG, tmp_path, server.base, patience=QUICK)
    assert files(tmp_path) == ["toy.swf.gz.part"]
    fetched = fetch(LOG, tmp_path, server.base, patience=QUICK)
    assert fetched.path.read_bytes() == BODY
    assert server.asked[-1][1] == "bytes=4000-"
    assert files(tmp_path) == ["toy.swf.gz"]


def test_a_server_without_ranges_sends_all_again(server, tmp_path):
    """Where the server ignores the range, the part is begun anew, not appended to."""
    server.ranges_supported = False
    server.cut_after = [6000]
    assert fetch(LOG, tmp_path, server.base, patience=QUICK).path.read_bytes() == BODY


def test_a_complete_part_is_taken(server, tmp_path):
    """A part that is whole already (416) is checked and renamed."""
    (tmp_path / "toy.swf.gz.part").write_bytes(BODY)
    assert fetch(LOG, tmp_path, server.base, patience=QUICK).path.read_bytes() == BODY


@pytest.mark.parametrize("left", [b"x" * 3000, BODY + b"more"])
def test_a_part_of_another_file_is_begun_anew(server, tmp_path, left):
    """What was left of another version does not spoil the download."""
    (tmp_path / "toy.swf.gz.part").write_bytes(left)
    assert fetch(LOG, tmp_path, server.base, patience=QUICK).path.read_bytes() == BODY


def test_wrong_content_is_refused(server, tmp_path):
    """A file with another digest is an error, and leaves nothing behind."""
    server.body = gzip.compress(TEXT + b"1", mtime=0)
    with pytest.raises(InputError, match="SHA-256"):
        fetch(LOG, tmp_path, server.base, patience=QUICK)
    assert files(tmp_path) == []


def test_wrong_content_is_taken_when_asked_for(server, tmp_path):
    """The user may take a file with another digest; it does not count as verified."""
    server.body = gzip.compress(TEXT + b"1", mtime=0)
    fetched = fetch(LOG, tmp_path, server.base, patience=QUICK, accept_other_digest=True)
    assert not fetched.verified
    assert fetched.sha256 == hashlib.sha256(TEXT + b"1").hexdigest()


@pytest.mark.parametrize("body", [b"<html>moved</html>", BODY[:-100], b"\x1f\x8bgarbage"])
def test_damage_is_refused_even_without_a_digest(server, tmp_path, body):
    """A web page, a file cut short and damaged compression are errors."""
    server.body = body
    with pytest.raises(InputError, match=r"toy\.swf\.gz"):
        fetch(UNKNOWN_DIGEST, tmp_path, server.base, patience=QUICK)
    assert files(tmp_path) == []


def test_an_unknown_digest_is_not_called_verified(server, tmp_path):
    """Without a digest in the catalogue the file is taken, but not called verified."""
    assert not fetch(UNKNOWN_DIGEST, tmp_path, server.base, patience=QUICK).verified


def test_not_found_is_an_error_at_once(server, tmp_path):
    """404 is not tried again."""
    server.statuses = [404]
    with pytest.raises(InputError, match="404"):
        fetch(LOG, tmp_path, server.base, patience=QUICK)
    assert len(server.asked) == 1


def test_passing_faults_are_tried_again(server, tmp_path):
    """503 and 429 are tried again."""
    server.statuses = [503, 429]
    assert fetch(LOG, tmp_path, server.base, patience=QUICK).verified


def test_nobody_answers(tmp_path):
    """A refused connection is tried again, then named."""
    with pytest.raises(InputError, match="broke off 3 times"):
        fetch(LOG, tmp_path, "http://127.0.0.1:9/", patience=QUICK)


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/x", "nonsense", "http://[/"])
def test_an_address_that_is_none(tmp_path, address):
    """Another protocol or no address at all is an error that names it."""
    with pytest.raises(InputError, match=r"cannot be fetched|broke off"):
        fetch(LOG, tmp_path, address, patience=QUICK)


def test_a_folder_that_cannot_be_written(server, tmp_path):
    """A file where the folder should be is a clear error."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        fetch(LOG, tmp_path / "file", server.base, patience=QUICK)


def test_the_catalogue_is_sound():
    """Names are unique, files are gzipped SWF of that name, and lookups ignore case."""
    known = catalogue()
    names = [log.name for log in known.log]
    assert len(set(names)) == len(names) >= 40
    assert all(log.file_name == f"{log.name}.swf.gz" for log in known.log)
    assert known.find("kth-sp2-1996-2").text_sha256 is not None
    with pytest.raises(UnknownNameError, match=r"KTH-SP2-1996-2\.1-cln"):
        known.find("KTH-SP2-1996-2.1")
