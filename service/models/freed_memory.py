"""Gives memory that a model has left behind back to the system, and spares Python's collector what stays."""

import ctypes
import gc

_M_MMAP_THRESHOLD = -3  # glibc's malloc.h
_LARGE_BYTES = 1 << 20


def map_large_blocks() -> None:
    """Have the C library ask the system for each block of a mebibyte or more, and return it when it is freed.

    glibc begins so by itself, but whenever such a block is freed it raises the bound up to 32 MiB: the weights of later
    models then lie among smaller blocks, and their place is not returned. Over twelve replacements under traffic a
    process held 640 to 780 MiB; with the bound fixed 360 to 420. See mallopt(3).
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def give_back() -> None:
    """Collect what is garbage, have the C library return free memory, and let the collector look only at what is made
    from now on. All threads wait for it for some tens of milliseconds.

    What a server has loaded are some 70,000 objects that stay. Looking through them stopped all threads for as long
    again and again while there was much to do, which is why they are frozen.

    glibc keeps what was freed for the arena in which it was allocated, and the threads that load models get one after
    the other: after some reloads a process would hold several times of what it uses. See malloc_trim(3); other C
    libraries have no such call, and nothing is returned.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
