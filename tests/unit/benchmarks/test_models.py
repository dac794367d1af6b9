"""What is measured can be built on any CPU: the last bits of float32 decide nothing."""

import numpy as np
import pytest
import torch

from benchmarks.models import BASE, random_transformer
from benchmarks.workload import random_sources
from export.verify import MAX_RELATIVE_ERROR

CONTROL = 4.0  # a gain with which conversion fails on some CPUs


@pytest.mark.parametrize(("gain", "is_steady"), [(None, True), (CONTROL, False)])
@torch.no_grad()
def test_random_weights_do_not_amplify_rounding(gain: float | None, is_steady: bool) -> None:
    model = random_transformer(BASE) if gain is None else random_transformer(BASE, gain)
    sources = torch.tensor(random_sources(4, 25, BASE.vocabulary_size, BASE.eos_id, seed=1))
    targets = torch.from_numpy(np.random.default_rng(2).integers(4, BASE.vocabulary_size, (4, 20)))
    single = model(sources, targets, None)
    exact = model.double()(sources, targets, None)
    extent = exact.amax(-1) - exact.amin(-1)
    largest = float(((single - exact).abs().amax(-1) / extent).max())
    assert (largest < MAX_RELATIVE_ERROR / 10) == is_steady, largest
