"""What all tests of deploy/ share."""

import functools
from collections.abc import Iterator

import kubernetes_validate  # type: ignore[import-untyped]
import pytest


@pytest.fixture(scope="session", autouse=True)
def schemas_are_read_once() -> Iterator[None]:
    """Cache the schemas: the validator would parse megabytes of them for every document."""
    with pytest.MonkeyPatch.context() as patch:
        contents = functools.cache(kubernetes_validate.utils.schema_contents)
        patch.setattr(kubernetes_validate.utils, "schema_contents", contents)
        yield
