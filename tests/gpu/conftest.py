"""A skip, with the reason, for tests that need a GPU where there is none."""

import pytest

from service.engine.runtime.session import DeviceUnavailable, check_device


@pytest.fixture(scope="session", autouse=True)
def cuda() -> None:
    """Skip unless ONNX Runtime's CUDA provider really starts on this machine."""
    try:
        check_device("cuda")
    except DeviceUnavailable as error:
        pytest.skip(str(error))
