import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchmarks import serving
from tests.unit.benchmarks.test_figures import saturated


class Measured:
    """Two rounds of one contender; `rate` is its capacity."""

    rate = 100.0
    asked: tuple[Any, ...] = ()

    def __init__(self, *_: Any) -> None:
        pass

    def tune(self) -> list[dict[str, Any]]:
        return [{"kind": "tuning"}]

    def measure(self, parts: Sequence[str], multiples: Sequence[float], rounds: int) -> Iterator[dict[str, Any]]:
        Measured.asked = (tuple(parts), len(multiples), rounds)
        yield saturated(1, "continuous", self.rate)
        yield saturated(2, "continuous", self.rate + 2)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(serving, "_Serving", Measured)
    monkeypatch.setattr(serving, "prepare", lambda *_: tmp_path)
    return tmp_path / "build" / "bench"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(serving.main, ["--model", "en-de", *arguments])


def test_loads_figures_and_tuning_are_written(folder: Path) -> None:
    result = run("--part", "capacity", "--rounds", "2")
    assert result.exit_code == 0
    assert "| en-de: capacity, calls/s, continuous | 101 | 100 to 102 | 2 |" in result.output
    assert Measured.asked == (("capacity",), 8, 2)
    [figure] = json.loads((folder / "serving_figures.json").read_text())
    assert (figure["values"], figure["low"]) == ([100.0, 102.0], pytest.approx(89.9))
    assert figure["machine"]["cpus"] >= 1
    assert len(json.loads((folder / "serving.json").read_text())) == 2
    assert [each["kind"] for each in json.loads((folder / "serving_tuning.json").read_text())] == ["tuning"]


def test_all_parts_by_default_and_fewer_loads_if_quick(folder: Path) -> None:
    assert run("--quick").exit_code == 0
    assert Measured.asked == (serving.ALL_PARTS, 4, 1)


def test_a_repetition_fails_if_a_figure_is_outside_its_band(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    recorded = (folder / "serving_figures.json").rename(folder / "recorded.json")
    again = run("--compare", str(recorded))
    assert again.exit_code == 0
    assert "| 101 | yes |" in again.output
    monkeypatch.setattr(Measured, "rate", 50.0)
    slower = run("--compare", str(recorded))
    assert slower.exit_code == 1
    assert "| 51 | NO |" in slower.output
    assert "1 of 1 figures are outside their bands." in slower.output
