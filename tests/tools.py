"""Programs that tests run and pip does not install: tests skip where they are missing, except in CI."""

import os
import shutil

import pytest

REQUIRED = "DRAGOMAN_REQUIRE_TOOLS"  # set by .ci/run


def tool(name: str, package: str) -> str:
    """Return the path of a program from Debian's `package`; if missing, skip the test, or fail if `REQUIRED` is set."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")  # not on the PATH of Debian's users
    if path is None:
        reason = f"{name} is not installed; it comes with Debian's package {package}"
        if os.environ.get(REQUIRED):
            pytest.fail(reason)
        pytest.skip(reason)
    return path
