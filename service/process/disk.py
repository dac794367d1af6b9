"""What has been written reaches the disk."""

import os
from pathlib import Path


def flush(path: Path) -> None:
    """Flush the system's cache of a file or folder to disk, so that a power cut leaves what is there now.

    Raises:
        OSError: it can't be opened or flushed.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
