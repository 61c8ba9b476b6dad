"""Memory is given back."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from foresail.service.metrics import give_back_free_memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other C libraries do not")
def test_what_was_freed_in_pieces_is_given_back():
    """Of 60 MB of small pieces every thousandth stays; most of the rest goes back to the system."""
    process = psutil.Process()
    give_back_free_memory()
    pieces = [bytes(600) for _ in range(100_000)]
    full = process.memory_info().rss
    pieces[:] = [each for at, each in enumerate(pieces) if at % 1000 == 0]
    give_back_free_memory()
    assert full - process.memory_info().rss > 30e6


_IN_TURN = """
import threading, psutil
from foresail.service.metrics import share_one_heap
share_one_heap()
kept, threads, turn, end = [], [], threading.Lock(), threading.Barrier(6)
def fill():
    with turn:
        pieces = [bytes(600) for _ in range(50_000)]
        kept.extend(pieces[::400])
        del pieces
    end.wait()
before = psutil.Process().memory_info().rss
threads = [threading.Thread(target=fill) for _ in range(5)]
for each in threads:
    each.start()
with turn:
    pass
end.wait()
print(psutil.Process().memory_info().rss - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other C libraries do not")
def test_what_one_thread_has_freed_another_can_use():
    """Five threads that take and free 30 MB one after the other take that once, not five times."""
    told = subprocess.run([sys.executable, "-c", _IN_TURN], capture_output=True, check=True)
    assert int(told.stdout) < 75e6


_LET_GO = """
import psutil
from llvmlite import binding
from foresail.service.metrics import let_go_of_libraries
held = psutil.Process().memory_info
before = held().rss
let_go_of_libraries()
print(before - held().rss)
binding.initialize_native_target()
binding.initialize_native_asmprinter()
machine = binding.Target.from_default_triple().create_target_machine()
text = "define i64 @one() { ret i64 1 }"
print(len(machine.emit_object(binding.parse_assembly(text))) > 0)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems tell less")
def test_libraries_are_let_go_and_go_on_working():
    """Their pages come from the file again, but for those that were written to."""
    told = subprocess.run([sys.executable, "-c", _LET_GO], capture_output=True, check=True)
    freed, works = told.stdout.split()
    assert int(freed) > 20e6
    assert works == b"True"
