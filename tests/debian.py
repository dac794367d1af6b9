"""Files of Debian's packages, of any suite and architecture, without installing them."""

import platform
import subprocess
from pathlib import Path

from tests.tools import tool

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
USR = ("bin", "lib", "lib64", "sbin")  # links into /usr, which Debian's package base-files has


def mirror(suite: str) -> str:
    """Return where this machine gets its own suite's packages from, which has the other suites as well."""
    own = platform.freedesktop_os_release()["VERSION_CODENAME"]
    targets = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", f"Codename: {own}"]
    told = subprocess.run(targets, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert told, f"apt has no source for {own}, so there is none for {suite} either"
    return told[0]


def unpack(folder: Path, suite: str, packages: tuple[str, ...]) -> Path:
    """Fetch packages, named as `NAME` or `NAME:ARCHITECTURE`, into a folder, and return the root of their files."""
    downloads, root = folder / "packages", folder / "root"
    for path in (downloads, root / "usr", folder / "state/lists/partial", folder / "cache/archives/partial"):
        path.mkdir(parents=True)
    for name in USR:
        (root / "usr" / name).mkdir()
        (root / name).symlink_to(f"usr/{name}")
    (folder / "status").touch()
    (folder / "sources.list").write_text(f"deb [signed-by={KEYS}] {mirror(suite)} {suite} main\n")
    settings = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::SourceList": folder / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "APT::Sandbox::User": "root",  # another user may not read the folders of pytest
        "APT::Architectures::": "arm64",
        "Acquire::Languages": "none",
    }
    apt = ["apt-get", "--quiet=2", *(f"--option={name}={value}" for name, value in settings.items())]
    subprocess.run([*apt, "update"], check=True, timeout=300)
    subprocess.run([*apt, "download", *packages], cwd=downloads, check=True, timeout=300)
    for path in sorted(downloads.iterdir()):
        subprocess.run([tool("dpkg-deb", "dpkg"), "--extract", path, root], check=True, timeout=60)
    return root
