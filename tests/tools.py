"""Programs that tests run and pip does not install: tests skip where they are missing, except in CI."""

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

REQUIRED = "DRAGOMAN_REQUIRE_TOOLS"  # set by .ci/run


def tool(name: str, package: str) -> str:
    """Return the path of a program from Debian's `package`; if missing, skip the test, or fail if `REQUIRED` is set."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")  # not on the PATH of Debian's users
    if path is None:
        _missing(f"{name} is not installed; it comes with Debian's package {package}")
    return path


def built_file(path: Path, target: str) -> Path:
    """Return a file that `make TARGET` fetches; if missing, skip the test, or fail if `REQUIRED` is set."""
    if not path.exists():
        _missing(f"{path.name} is not there; it comes with make {target}")
    return path


def _missing(reason: str) -> NoReturn:
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)
