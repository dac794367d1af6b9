"""Tells whether memory ran out: Python, numpy, ONNX Runtime and the system's loader each say it in another way."""

import errno

# What C++ throws and kernels say is found in texts only. No thread is started without memory for its stack.
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
    """The first of the errors that led to this one, itself included, that is for want of memory; `None` if none is."""
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
