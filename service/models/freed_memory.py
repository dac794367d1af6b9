"""Gives memory that a model has left behind back to the system."""

import ctypes


def give_back() -> None:
    """Have the C library return free memory, of all its arenas; takes milliseconds, and no thread waits for it long.

    glibc keeps what was freed for the arena in which it was allocated, and the threads that load models get one after
    the other: after some reloads a process would hold several times of what it uses. See malloc_trim(3); other C
    libraries have no such call, and nothing is done.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
