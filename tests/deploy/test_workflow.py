"""The workflows of a release and of pull requests: read, and audited by zizmor; nothing here can run them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.patience import patient
from tests.servers import REPOSITORY

ZIZMOR = Path(sys.executable).with_name("zizmor")
SETTINGS = REPOSITORY / ".github" / "zizmor.yml"
WORKFLOWS = REPOSITORY / ".github" / "workflows"
TEXT = (WORKFLOWS / "release.yml").read_text()
JOBS: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["jobs"]
OF_EVERY_DEBIAN = {"chroot": "coreutils", "dpkg-deb": "dpkg", "nsenter": "util-linux", "openssl": "openssl"}
CREDENTIALS = "        with:\n          persist-credentials: false\n"
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()


def findings(workflow: str, folder: Path) -> set[str]:
    """Return the names of the audits that a workflow fails."""
    file = folder / "release.yml"
    file.write_text(workflow)
    flags = ("--offline", "--no-exit-codes", "--format", "json-v1", "--config", SETTINGS)
    told = subprocess.run([ZIZMOR, *flags, file], capture_output=True, text=True, timeout=patient(30))
    assert told.returncode == 0, told.stderr
    return {finding["ident"] for finding in json.loads(told.stdout) if not finding["ignored"]}


@pytest.mark.parametrize("name", ["release.yml", "ci.yml"])
def test_an_audit_finds_nothing(tmp_path: Path, name: str) -> None:
    assert findings((WORKFLOWS / name).read_text(), tmp_path) == set()


def test_pull_requests_run_what_a_developer_runs() -> None:
    workflow = yaml.safe_load((WORKFLOWS / "ci.yml").read_text())
    assert "pull_request" in workflow[True]  # YAML 1.1 reads "on" as a truth value
    assert workflow["jobs"]["test"]["steps"][-1] == {"run": ".ci/run"}


def test_each_program_that_a_test_asks_for_is_installed_by_ci() -> None:
    rows = [line.split() for line in (REPOSITORY / ".ci/packages.txt").read_text().splitlines() if line[0] != "#"]
    installed = {(name, package) for package, names, *_ in rows for name in names.split(",")}
    asked = {
        found
        for path in (REPOSITORY / "tests").rglob("*.py")
        for found in re.findall(r'\btool\("([\w+-]+)", ?"([\w+-]+)"\)', path.read_text("utf-8"))
    }
    assert len(asked) > 15
    assert asked - installed == {(name, OF_EVERY_DEBIAN[name]) for name in OF_EVERY_DEBIAN}


def test_an_audit_finds_a_planted_fault(tmp_path: Path) -> None:
    assert "artipacked" in findings(TEXT.replace(CREDENTIALS, "", 1), tmp_path)


def test_each_job_needs_jobs_and_outputs_that_there_are() -> None:
    for job in JOBS.values():
        needed = {job["needs"]} if isinstance(job.get("needs"), str) else set(job.get("needs", ()))
        assert needed <= JOBS.keys()
        for name, output in re.findall(r"needs\.([\w-]+)\.outputs\.(\w+)", json.dumps(job)):
            assert name in needed
            assert output in JOBS[name]["outputs"]


def test_nothing_is_published_that_was_not_tested() -> None:
    def before(name: str) -> set[str]:
        needed = JOBS[name].get("needs", [])
        direct = {needed} if isinstance(needed, str) else set(needed)
        return direct.union(*map(before, direct))

    published = [name for name, job in JOBS.items() if job.get("environment") == "release"]
    assert published
    assert all({"version", "test"} <= before(name) for name in published)
    with_identity = [name for name, job in JOBS.items() if "id-token" in job["permissions"]]
    assert with_identity == published


def test_the_image_is_told_all_that_the_dockerfile_asks() -> None:
    (build,) = [step["with"] for step in JOBS["images"]["steps"] if "build-args" in step.get("with", {})]
    told = {line.split("=")[0] for line in build["build-args"].splitlines()}
    assert told == set(re.findall(r'^ARG (\w+)=""$', DOCKERFILE, re.MULTILINE))
    assert "rewrite-timestamp=true" in build["outputs"]
