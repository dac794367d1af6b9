"""Detection of out-of-memory errors: Python, numpy, ONNX Runtime and the system's loader report them differently."""

import errno

# Errors of C++ and kernels are recognizable only by their text. Threads can't start without memory for their stacks.
_SIGNS = (
    "bad_alloc",
    "bad allocation",
    "failed to allocate memory",
    "cannot allocate memory",
    "failed to map segment",
    "can't start new thread",
    "pthread_create",
)


def memory_shortage(error: BaseException) -> BaseException | None:
    """Return the earliest error in this one's chain, itself included, due to a lack of memory; `None` if none is."""
    found: BaseException | None = None
    each: BaseException | None = error
    while each is not None:
        if _is_shortage(each):
            found = each
        each = each.__cause__ or each.__context__
    return found


def _is_shortage(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    said = str(error).lower()
    return any(sign in said for sign in _SIGNS)
