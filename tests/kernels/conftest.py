"""The compiled search, once per session."""

import shutil
from pathlib import Path

import pytest

from tests.kernels.native_search import compile_search


@pytest.fixture(scope="session")
def search_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    return compile_search(compiler, tmp_path_factory.mktemp("search"))
