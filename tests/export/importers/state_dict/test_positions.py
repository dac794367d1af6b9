"""Position tables as the documents compute them are recognised, and no others."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from export.architecture import PositionConfig
from export.architecture.positions import sinusoidal_table
from export.importers.state_dict.positions import READINGS, find_reading, fits
from tests.export.importers.state_dict.readings import Choices, position_table

CHOICES = Choices(nn.Identity)


def in_float32(num_positions: int, width: int) -> Tensor:
    """Compute the table as document 002 does: each wavelength is rounded to float32 before the division."""
    table = torch.zeros(num_positions, width)
    for component in range(width):
        omega = torch.tensor(1000.0 ** ((component - component % 2) / width))
        angles = torch.arange(num_positions) / omega
        table[:, component] = angles.cos() if component % 2 else angles.sin()
    return table


@pytest.mark.parametrize("base", [1000.0, 10000.0])
@pytest.mark.parametrize("has_brackets", [True, False])
def test_readings_are_told_apart(base: float, has_brackets: bool) -> None:
    table = position_table(20, 16, replace(CHOICES, base=base, has_brackets=has_brackets))[0]
    reading = find_reading([table, table[:7]])
    assert reading == PositionConfig(base=base, cosine_exponent="paired" if has_brackets else "unbracketed")
    assert sum(fits(table, each) for each in READINGS) == 1


def test_rounding_is_forgiven() -> None:
    table = in_float32(2000, 64)
    assert (table.numpy() != sinusoidal_table(2000, 64, PositionConfig(base=1000.0))).any()
    assert find_reading([table]) == PositionConfig(base=1000.0)


def test_other_tables_are_none_of_them() -> None:
    table = position_table(20, 16, CHOICES)[0]
    assert find_reading([table, position_table(20, 16, replace(CHOICES, base=10000.0))[0]]) is None
    assert find_reading([table + 0.001]) is None
    assert find_reading([torch.from_numpy(sinusoidal_table(20, 16, PositionConfig(layout="halves")))]) is None
    assert find_reading([table * math.nan]) is None
