"""Add the models to the list of what is in the image: `add_models.py SBOM MODELS`, while the image is built.

`service.bundle` has what reads a manifest, but this runs beside the installed packages, without them.
"""

import json
import sys
from pathlib import Path
from typing import Any


def component(manifest: Path) -> dict[str, Any]:
    """Return a bundle as a component of CycloneDX 1.6: name, version, licence, and each file with its SHA-256."""
    bundle = json.loads(manifest.read_text(encoding="utf-8"))
    version = manifest.parent.name
    files = [
        {"type": "file", "name": name, "hashes": [{"alg": "SHA-256", "content": digest}]}
        for name, digest in sorted(bundle["checksums"].items())
    ]
    return {
        "bom-ref": f"model:{bundle['name']}@{version}",
        "type": "machine-learning-model",
        "name": bundle["name"],
        "version": version,
        "licenses": [{"license": {"id": bundle["licence"]}}],
        "components": files,
    }


def main() -> None:
    """Rewrite the file in place."""
    sbom, models = map(Path, sys.argv[1:])
    document = json.loads(sbom.read_text(encoding="utf-8"))
    document["components"] += [component(manifest) for manifest in sorted(models.glob("*/*/manifest.json"))]
    sbom.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
