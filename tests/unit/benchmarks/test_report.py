import json
from pathlib import Path

from benchmarks.report import read_records, write_records


def test_a_record_says_where_when_and_how_it_was_measured(tmp_path: Path) -> None:
    path = write_records("offline", [{"model": "base", "batch": 8}], tmp_path)
    [record] = json.loads(path.read_text())
    assert path == tmp_path / "offline.json"
    assert record["benchmark"] == "offline"
    assert (record["model"], record["batch"]) == ("base", 8)
    assert record["machine"]["cpus"] >= 1
    assert record["machine"]["memory_gib"] > 0
    assert record["machine"]["cpu"] == record["cpu"]
    assert {"python", "commit", "onnxruntime", "numpy"} <= record["versions"].keys()
    assert record["command"].startswith("python")
    assert record["written"].endswith("Z")


def test_a_record_may_name_its_own_benchmark(tmp_path: Path) -> None:
    write_records("a", [{"benchmark": "b"}], tmp_path)
    assert read_records("a", tmp_path)[0]["benchmark"] == "b"


def test_what_has_not_run_has_no_records(tmp_path: Path) -> None:
    assert read_records("serving", tmp_path) == []
