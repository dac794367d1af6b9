"""deploy/bulk: jobs that cluster managers accept, with the shards and exit codes that the command has."""

import json
import re
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
import yaml

from service.cli.bulk import bulk
from service.cli.errors import ExitCode
from tests.servers import REPOSITORY

BULK = REPOSITORY / "deploy" / "bulk"
JOB = yaml.safe_load((BULK / "job.yaml").read_text())
RAY_JOB = yaml.safe_load((BULK / "rayjob.yaml").read_text())
ARRAY = (BULK / "array.sbatch").read_text()
GUIDE = (REPOSITORY / "docs" / "bulk-clusters.md").read_text()


@pytest.mark.parametrize("version", ["1.33", "1.35", "1.37"])
def test_kubernetes_takes_the_job(version: str) -> None:
    kubernetes_validate.validate(JOB, version, strict=True)


def test_the_job_has_as_many_indices_as_shards() -> None:
    (container,) = JOB["spec"]["template"]["spec"]["containers"]
    shard = container["args"][container["args"].index("--shard") + 1]
    assert shard == f"/{JOB['spec']['completions']}"
    (rule,) = [rule for rule in JOB["spec"]["podFailurePolicy"]["rules"] if rule["action"] == "FailIndex"]
    assert rule["onExitCodes"]["containerName"] == container["name"]
    hopeless = {ExitCode.USAGE, ExitCode.DATA, ExitCode.NO_INPUT, ExitCode.CONFIG}
    assert set(rule["onExitCodes"]["values"]) == hopeless


def test_the_array_has_as_many_tasks_as_shards() -> None:
    (last,) = re.findall(r"--array=0-(\d+)", ARRAY)
    (shards,) = re.findall(r"--shard /(\d+)", ARRAY)
    assert int(shards) == int(last) + 1


@pytest.mark.parametrize("text", [" ".join(JOB["spec"]["template"]["spec"]["containers"][0]["command"]), ARRAY])
def test_their_options_exist(text: str) -> None:
    known = {name for param in bulk.params for name in param.opts}
    given = set(re.findall(r"(?<= )--[a-z-]+", text.split("dragoman bulk", 1)[1]))
    assert given <= known
    assert "--to" in given


@pytest.mark.parametrize("group", ["head", "worker"])
def test_kubernetes_takes_the_pods_of_ray(group: str) -> None:
    cluster = RAY_JOB["spec"]["rayClusterSpec"]
    template = cluster["headGroupSpec" if group == "head" else "workerGroupSpecs"]
    spec = (template if group == "head" else template[0])["template"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": group}, "spec": spec}
    kubernetes_validate.validate(pod, "1.37", strict=True)


def test_the_program_of_the_guide_fits_the_nodes_of_ray() -> None:
    (program,) = re.findall(r"ray_translate\(\n(.*?)\n\)", GUIDE, re.DOTALL)
    (workers,) = RAY_JOB["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert re.findall(r"num_actors=(\d+)", program) == [str(workers["replicas"])]
    (asked,) = re.findall(r"resources=(\{.*?\})", program)
    assert json.loads(json.loads(workers["rayStartParams"]["resources"])) == json.loads(asked)


def test_the_program_of_the_guide_for_spark_gives_each_row_its_answer() -> None:
    """Spark calls the function with an iterator of Arrow batches, in a worker of its own."""
    (program,) = [block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "mapInArrow" in block]
    scope: dict[str, Any] = {}
    exec(program[: program.index("\nrows = ")].replace("/models", str(REPOSITORY / "models" / "en-de" / "1")), scope)
    texts: list[list[str | None]] = [["Good morning.", None], ["Good morning."]]
    batches = [pa.record_batch({"id": [str(n) for n, _ in enumerate(each)], "text": each}) for each in texts]
    table = pa.Table.from_batches(list(scope["translate"](iter(batches))))
    assert table["translation"].to_pylist()[::2] == ["Guten Morgen.", "Guten Morgen."]
    assert table["error"].to_pylist() == [None, None, None]
    (schema,) = re.findall(r'mapInArrow\(translate, "(.*?)"\)', program)
    assert [column.split()[0] for column in schema.split(", ")] == table.column_names
