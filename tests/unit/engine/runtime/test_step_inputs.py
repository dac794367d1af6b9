import numpy as np
import pytest

from service.bundle import graph_io
from service.engine.runtime.step_inputs import StepInputs
from tests.unit.engine.runtime.device_access import get


@pytest.mark.parametrize("device", [None, "cpu"])
def test_buffers_show_what_was_written_last(device: str | None) -> None:
    inputs = StepInputs(5, device)
    buffers = inputs.buffers(3)
    for shift in (0, 1):
        for array, first in ((inputs.token_ids, 7), (inputs.lengths, 1), (inputs.source_lengths, 4)):
            array[:3] = np.arange(first, first + 3) + shift
        inputs.send()
        np.testing.assert_array_equal(get(buffers[graph_io.TOKEN_IDS]), np.array([7, 8, 9]) + shift)
        np.testing.assert_array_equal(get(buffers[graph_io.LENGTHS]), np.array([1, 2, 3]) + shift)
        np.testing.assert_array_equal(get(buffers[graph_io.SOURCE_LENGTHS]), np.array([4, 5, 6]) + shift)
    assert [buffers[name].dtype for name in (graph_io.TOKEN_IDS, graph_io.LENGTHS)] == [np.int64, np.int32]
