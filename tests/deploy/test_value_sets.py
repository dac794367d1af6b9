"""The chart, by a table of values: those that sites set are rendered for every Kubernetes, wrong ones are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.helm import chart_documents, linted, refusal
from tests.deploy.manifests import VERSIONS, validate

SETS = yaml.safe_load(Path(__file__).with_name("value_sets.yaml").read_text())
RELEASE = "dragoman"
RENDERED = {"release", "version", "lint"}  # what is known, or wrong, only of what is rendered


def repetitions(found: Any, within: str = "") -> Iterator[str]:
    """Yield what server-side apply refuses: entries of a list with the same key."""
    if isinstance(found, list):
        entries = [entry for entry in found if isinstance(entry, dict)]
        key = "mountPath" if within == "volumeMounts" else "name"
        names = [entry[key] for entry in entries if key in entry]
        yield from (f"{within} has {name} twice" for name in set(names) if names.count(name) > 1)
        for entry in entries:
            yield from repetitions(entry)
    elif isinstance(found, dict):
        for key, value in found.items():
            yield from repetitions(value, key)


@pytest.mark.parametrize("site", SETS["accepted"], ids=lambda site: site["name"])
def test_what_sites_set(site: dict[str, Any]) -> None:
    """As Helm renders it, it fits the schemas, has names that Services can have, and no name twice."""
    versions = [version for version in VERSIONS if version >= site.get("since", VERSIONS[0])]
    documents = chart_documents(site["values"], "--kube-version", versions[0], release=site.get("release", RELEASE))
    assert [found for document in documents for found in repetitions(document)] == []
    for version in versions[:: len(versions) - 1]:
        for document in documents:
            if document["kind"] != "ServiceMonitor":  # whose schema is not here
                validate(document, version)
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    assert len(set(names)) == len(names)
    assert max(len(name) for kind, name in names if kind == "Service") <= 63


def test_the_linter_says_the_same(tmp_path: Path) -> None:
    """It knows no release and no version of Kubernetes, and passes a chart without an image."""
    told = linted([each["values"] for each in (*SETS["accepted"], *SETS["refused"])], tmp_path)
    accepted, refused = told[: len(SETS["accepted"])], told[len(SETS["accepted"]) :]
    assert [each for each in accepted if "[ERROR]" in each or "[WARNING]" in each] == []
    untold = [wrong for wrong, said in zip(SETS["refused"], refused, strict=True) if wrong["told"] not in said]
    assert untold == [wrong for wrong in SETS["refused"] if wrong.keys() & RENDERED]


@pytest.mark.parametrize("wrong", [each for each in SETS["refused"] if each.keys() & RENDERED], ids=lambda w: w["told"])
def test_wrong_values_are_refused_by_name(wrong: dict[str, Any]) -> None:
    arguments = ["--kube-version", wrong["version"]] if "version" in wrong else []
    assert wrong["told"] in refusal(wrong["values"], *arguments, release=wrong.get("release", RELEASE))


def test_repetitions_are_seen() -> None:
    (deployment,) = [each for each in chart_documents({}) if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container["env"].append({"name": "DRAGOMAN_SERVE_NUM_THREADS", "value": "1"})
    container["volumeMounts"].append({"name": "config", "mountPath": "/tmp"})
    assert sorted(repetitions(deployment)) == [
        "env has DRAGOMAN_SERVE_NUM_THREADS twice",
        "volumeMounts has /tmp twice",
    ]


def test_every_variable_of_the_chart_is_refused_from_a_site() -> None:
    """Those of all features, so that a new one can't be forgotten."""
    everything = next(site["values"] for site in SETS["accepted"] if site["name"] == "everything")
    (deployment,) = [each for each in chart_documents(everything | {"device": "cuda"}) if each["kind"] == "Deployment"]
    names = [each["name"] for each in deployment["spec"]["template"]["spec"]["containers"][0]["env"]]
    assert len(names) > 10
    settings = {name: name.removeprefix("DRAGOMAN_SERVE_").lower() for name in names}
    told = refusal({"env": [{"name": name} for name in names], "settings": dict.fromkeys(settings.values(), "1")})
    assert [name for name in names if f"env has {name}, which the chart sets" not in told] == []
    assert [name for name in names if f"settings.{settings[name]} is set by the chart" not in told] == []
