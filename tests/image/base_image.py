"""The image's base: the real one where a registry can be reached, otherwise one made of Debian's packages."""

import re
import subprocess
from pathlib import Path

from tests.debian import mirror
from tests.image.engine import CommandFailed, ContainerEngine
from tests.servers import REPOSITORY
from tests.tools import tool

BASE: str = re.findall(r"^ARG PYTHON_IMAGE=(.*)$", (REPOSITORY / "Dockerfile").read_text(), re.MULTILINE)[0]
VERSION, SUITE = re.findall(r"^python:(.*)-slim-(.*)$", BASE)[0]
STAND_IN = f"localhost/{BASE}"
PACKAGES = f"ca-certificates netbase tzdata python{VERSION}-venv"
SETTINGS = {
    "PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "DEB_PYTHON_INSTALL_LAYOUT": "deb_system",  # where Python is, not below its folder `local`
}
# Debian's own Python, copied to where the real image has its Python, with pip as a package of that.
INSTALL = f"""set -e
cp -a /usr/bin/python{VERSION} /usr/local/bin/
cp -a /usr/lib/python{VERSION} /usr/local/lib/
rm /usr/local/lib/python{VERSION}/EXTERNALLY-MANAGED
ln -s python{VERSION} /usr/local/bin/python3
ln -s python{VERSION} /usr/local/bin/python
wheel=$(echo /usr/share/python-wheels/pip-*.whl)
python "$wheel/pip" install --quiet --no-index --root-user-action ignore "$wheel"
find /usr/local/lib -name __pycache__ -prune -exec rm -r {{}} +
"""


def base_image(engine: ContainerEngine) -> str:
    """Pull or build the base and return its name; takes some 30 seconds without a registry."""
    try:
        engine.podman("pull", "--quiet", BASE, timeout_seconds=300)
    except (CommandFailed, subprocess.TimeoutExpired):
        return _stand_in(engine)
    return BASE


def _stand_in(engine: ContainerEngine) -> str:
    """Build Debian's smallest variant of the base's suite, with that suite's Python in /usr/local."""
    container = engine.buildah("from", "scratch")
    root = Path(engine.buildah("mount", container))
    subprocess.run(
        [
            *(tool("mmdebstrap", "mmdebstrap"), "--quiet", "--mode=root", "--variant=minbase"),
            "--dpkgopt=force-unsafe-io",  # it is temporary; waiting for the disk would take minutes
            *(f"--include={PACKAGES}", SUITE, root, mirror(SUITE)),
        ],
        check=True,
        timeout=300,
    )
    subprocess.run([tool("chroot", "coreutils"), root, "sh", "-c", INSTALL], env=SETTINGS, check=True, timeout=120)
    environment = [argument for name, value in SETTINGS.items() for argument in ("--env", f"{name}={value}")]
    engine.buildah("config", *environment, "--cmd", "python3", container)
    engine.buildah("umount", container)
    engine.buildah("commit", "--quiet", "--rm", container, STAND_IN)
    return STAND_IN
