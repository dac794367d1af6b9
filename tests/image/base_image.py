"""The image's base: the real one where a registry can be reached, otherwise one built from parts of this machine."""

import subprocess
import sys
from pathlib import Path

from tests.image.engine import CommandFailed, ContainerEngine
from tests.tools import tool

BASE = "python:3.11-slim-bookworm"
STAND_IN = f"localhost/{BASE}"
SUITE = "bookworm"
PACKAGES = "ca-certificates netbase tzdata libssl3 libffi8 libsqlite3-0 zlib1g libbz2-1.0 liblzma5 libreadline8 libncursesw6 libexpat1 libuuid1"  # noqa: E501
# Left out by `python:*-slim` as well.
UNUSED = ("site-packages/*", "test", "idlelib", "tkinter", "turtledemo", "config-*")
SETTINGS = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


def base_image(engine: ContainerEngine) -> str:
    """Pull or build the base and return its name; takes some 30 seconds without a registry."""
    try:
        engine.podman("pull", "--quiet", BASE, timeout_seconds=300)
    except (CommandFailed, subprocess.TimeoutExpired):
        return _stand_in(engine)
    return BASE


def _stand_in(engine: ContainerEngine) -> str:
    """Build Debian's smallest variant with the CPython that runs this test in /usr/local, as in the real image."""
    container = engine.buildah("from", "scratch")
    root = Path(engine.buildah("mount", container))
    subprocess.run(
        [
            *(tool("mmdebstrap", "mmdebstrap"), "--quiet", "--mode=root", "--variant=minbase"),
            "--dpkgopt=force-unsafe-io",  # it is temporary; waiting for the disk would take minutes
            *(f"--include={PACKAGES}", SUITE, root, _mirror()),
        ],
        check=True,
        timeout=300,
    )
    _copy_python(root / "usr/local")
    prepare = "ldconfig && python3 -m ensurepip >/dev/null && ln -s pip3 /usr/local/bin/pip"
    subprocess.run([tool("chroot", "coreutils"), root, "sh", "-c", prepare], env=SETTINGS, check=True, timeout=120)
    environment = [argument for name, value in SETTINGS.items() for argument in ("--env", f"{name}={value}")]
    engine.buildah("config", *environment, "--cmd", "python3", container)
    engine.buildah("umount", container)
    engine.buildah("commit", "--quiet", "--rm", container, STAND_IN)
    return STAND_IN


def _copy_python(prefix: Path) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = f"lib/lib{version}.so.1.0"
    installed = Path(sys.base_prefix)
    parts = [part for part in (f"bin/{version}", f"lib/{version}", library) if (installed / part).exists()]
    unused = [f"--exclude=lib/{version}/{name}" for name in UNUSED]
    pack: list[str | Path] = [
        "tar",
        "-C",
        installed,
        *unused,
        "--exclude=__pycache__",
        "--exclude=*.a",
        "-cf",
        "-",
        *parts,
    ]
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as packed:
        subprocess.run(["tar", "-C", prefix, "-xf", "-"], stdin=packed.stdout, check=True, timeout=120)
    for name in ("python3", "python"):
        (prefix / "bin" / name).symlink_to(version)


def _mirror() -> str:
    """Return where this machine gets its Debian packages from."""
    targets = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", f"Codename: {SUITE}"]
    told = subprocess.run(targets, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert told, f"apt has no source for {SUITE}, so no base image can be made; pull {BASE} by hand"
    return told[0]
