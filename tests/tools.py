"""Programs that tests run and pip does not install: skipped where they are missing, but not in CI."""

import os
import shutil

import pytest

REQUIRED = "DRAGOMAN_REQUIRE_TOOLS"  # .ci/run sets it


def tool(name: str, package: str) -> str:
    """The path of a program of Debian's `package`; without it the test is skipped, or fails where `REQUIRED` is set."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")  # Debian's users don't search these
    if path is None:
        reason = f"{name} is not installed; it comes with Debian's package {package}"
        if os.environ.get(REQUIRED):
            pytest.fail(reason)
        pytest.skip(reason)
    return path
