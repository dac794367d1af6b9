"""deploy/bulk: jobs that cluster managers accept, with the shards and exit codes that the command has."""

import re

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from service.cli.bulk import bulk
from service.cli.exit_codes import ExitCode
from tests.servers import REPOSITORY

BULK = REPOSITORY / "deploy" / "bulk"
JOB = yaml.safe_load((BULK / "job.yaml").read_text())
ARRAY = (BULK / "array.sbatch").read_text()


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
