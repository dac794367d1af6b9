"""Gives memory that a model has left behind back to the system, and spares Python's collector what stays."""

import ctypes
import gc


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
