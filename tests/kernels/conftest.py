"""The library of the kernels, which tests load by itself or through the service."""

import os
from pathlib import Path

import pytest
from filelock import FileLock

from kernels.build import build
from kernels.compilers import NoCompiler
from tests.servers import REPOSITORY
from tests.tools import REQUIRED

GIVEN = "DRAGOMAN_KERNELS_LIBRARY"  # another build of it, as with --sanitize


@pytest.fixture(scope="session")
def kernels_library() -> Path:
    """Return the library's path; skip without a compiler, or fail if tools are required."""
    if given := os.environ.get(GIVEN):
        return Path(given)
    (REPOSITORY / "build").mkdir(exist_ok=True)
    try:
        with FileLock(REPOSITORY / "build" / "kernels.lock"):
            return build(strict=True)
    except NoCompiler as error:
        if os.environ.get(REQUIRED):
            pytest.fail(str(error))
        pytest.skip(str(error))
