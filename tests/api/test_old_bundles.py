"""Bundles of every schema version are served, as the exporter of their time wrote them.

`bundles/schema_1` was written on 2026-11-26 by commit 699901af: a plain and an int8 bundle of a tiny model with random
weights, whose manifests lack what has been added since. Whoever raises `SCHEMA_VERSION` adds the next folder, of what
that version writes; bundles that are kept are never written again.
"""

import json
import shutil
from pathlib import Path

import pytest

from dragoman_client import Options
from service.bundle.manifest import SCHEMA_VERSION, Manifest
from service.models.reload_plan import ReloadOutcome
from service.text.tokenizers import single_spaced
from tests.servers import Serve

KEPT = Path(__file__).with_name("bundles")
UNGUARDED = Options(max_repeats=0, max_length_ratio=0.0, check_numbers=False)  # random models repeat themselves


def test_there_are_bundles_of_every_version() -> None:
    versions = {each.name: {Manifest.load(path).schema_version for path in each.glob("*/*")} for each in KEPT.iterdir()}
    assert versions == {f"schema_{version}": {version} for version in range(1, SCHEMA_VERSION + 1)}


@pytest.mark.parametrize("models", sorted(KEPT.iterdir()), ids=lambda models: str(models.name))
def test_they_translate_as_when_they_were_written(serve: Serve, models: Path) -> None:
    server = serve(models=models)
    manifests = [Manifest.load(path) for path in sorted(models.glob("*/*"))]
    assert {manifest.is_fused for manifest in manifests} == {False, True}
    with server.client() as client:
        for manifest in manifests:
            pairs = [pair for pair in manifest.golden if manifest.tokenizer.unk_id not in pair.source_ids]
            assert len(pairs) > 2
            found = client.translate([pair.text for pair in pairs], "en", "de", model=manifest.name, options=UNGUARDED)
            assert [each.text for each in found] == [single_spaced(pair.translation) for pair in pairs]


def test_a_bundle_of_a_newer_version_is_refused_while_the_old_one_is_served(serve: Serve, tmp_path: Path) -> None:
    models = shutil.copytree(KEPT / "schema_1" / "plain", tmp_path / "models" / "plain").parent
    server = serve(models=models)
    newer = shutil.copytree(models / "plain" / "1", models / "plain" / "2") / "manifest.json"
    newer.write_text(json.dumps(json.loads(newer.read_text()) | {"schema_version": SCHEMA_VERSION + 1}))
    assert server.reload() is ReloadOutcome.FAILED
    with server.client() as client:
        assert [model.version for model in client.models()] == ["1"]
        assert client.translate(["Hello"], "en", "de")[0].text
