"""Returns memory freed by a model to the system, and exempts long-lived objects from Python's garbage collector."""

import ctypes
import gc

_M_MMAP_THRESHOLD = -3  # glibc's malloc.h
_LARGE_BYTES = 1 << 20


def map_large_blocks() -> None:
    """Make the C library map each block of a mebibyte or more separately, and unmap it when it is freed.

    glibc starts that way, but whenever such a block is freed it raises the threshold, up to 32 MiB: the weights of
    later models then lie among smaller blocks, and their memory is not returned. Over twelve replacements under traffic
    a process held 640 to 780 MiB; with the threshold fixed, 360 to 420 MiB. See mallopt(3).
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def give_back() -> None:
    """Collect garbage, make the C library return free memory, and restrict the collector to objects created from now
    on. Stops all threads for tens of milliseconds.

    A loaded server has some 70,000 permanent objects. Traversing them stopped all threads for as long, again and again
    under load, which is why they are frozen.

    glibc keeps freed memory for the arena it was allocated in, and each thread that loads a model may use another
    arena: after some reloads a process would hold several times the memory it uses. See malloc_trim(3); other C
    libraries have no such call, and nothing is returned.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
