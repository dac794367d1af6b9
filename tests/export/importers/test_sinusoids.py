"""Position tables as people compute them are recognised, up to rounding in float32, and no others."""

import numpy as np
import pytest

from export.architecture import PositionConfig
from export.architecture.stored import Array
from export.importers.sinusoids import FORMULAS, difference, find_formula


def computed(num: int, width: int, base: float = 1000.0, offset: int = 0, has_brackets: bool = True) -> Array:
    """Compute the table as document 002 does: each wavelength is rounded to float32 before the division."""
    component = np.arange(width)
    odd = component % 2
    exponent = (component - odd) / width if has_brackets else np.where(odd, component - 1 / width, component / width)
    angles = np.arange(offset, offset + num, dtype=np.float32)[:, None] / (base**exponent).clip(max=1e38).astype(
        np.float32
    )
    return np.where(odd, np.cos(angles), np.sin(angles))


@pytest.mark.parametrize("base", [1000.0, 10000.0])
@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize("has_brackets", [True, False])
def test_formulas_are_told_apart(base: float, offset: int, has_brackets: bool) -> None:
    table = computed(2000, 16, base, offset, has_brackets)
    exponent = "paired" if has_brackets else "unbracketed"
    assert find_formula(table, 2e-3) == PositionConfig(base=base, offset=offset, cosine_exponent=exponent)  # type: ignore[arg-type]
    assert sum(difference(table, each) <= 2e-3 for each in FORMULAS) == 1
    halves = np.concatenate([table[:, ::2], table[:, 1::2]], 1)
    assert find_formula(halves, 2e-3) == (PositionConfig("halves", base=base, offset=offset) if has_brackets else None)


def test_other_tables_are_none_of_them() -> None:
    table = computed(20, 16)
    for other in (table + 0.001, table[:, :15], table[:, :2], table * np.nan, computed(20, 16, 500.0), table[::-1]):
        assert find_formula(other, 1e-4) is None
