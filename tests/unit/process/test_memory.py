"""Freed memory is returned to the system, whichever thread's arena it came from."""

import platform

import pytest

from tests.programs import output_of

SCRIPT = """
import threading
import psutil
from service.process.memory import give_back

def resident_mib():
    return psutil.Process().memory_info().rss / 2**20

kept = []

def load():
    blocks = [bytearray(b"x" * 60_000) for _ in range(1000)]  # too small for mmap
    kept.append(blocks[-1])  # what comes last keeps the heap from shrinking by itself

before = resident_mib()
for _ in range(4):
    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
retained = resident_mib() - before
give_back()
print(retained, resident_mib() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep nothing for arenas, or say not")
def test_it_goes_back() -> None:
    retained, left = map(float, output_of(SCRIPT).split())
    assert retained > 30  # otherwise there was nothing to return
    assert left < 10


def test_the_collector_is_spared_what_stays_and_garbage_goes() -> None:
    script = """
import gc, weakref
from service.process.memory import give_back

class Node: pass

def cycle():
    node = Node()
    node.itself = node
    return node

old = cycle()
give_back()
seen = weakref.ref(old)
del old
gc.collect()
print(gc.get_freeze_count() > 1000, len(gc.get_objects()) < gc.get_freeze_count() / 2, seen() is not None)
give_back()
print(seen() is None)
"""
    assert output_of(script).split() == ["True"] * 4


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such bound")
@pytest.mark.parametrize(("fixed", "is_returned"), [("map_large_blocks()", True), ("", False)])
def test_large_blocks_stay_apart_from_small_ones(fixed: str, is_returned: bool) -> None:
    """Without it, the second block lies on the heap, where a small one behind it keeps it in place."""
    script = f"""
import psutil
from service.process.memory import map_large_blocks

def resident_mib():
    return psutil.Process().memory_info().rss / 2**20

{fixed}
del (block := [bytearray(b"x" * (24 << 20))])[:]
before = resident_mib()
large = bytearray(b"x" * (20 << 20))
behind = [bytearray(b"x" * 60_000) for _ in range(200)]
del large
print(resident_mib() - before < 20)
"""
    assert output_of(script).strip() == str(is_returned)
