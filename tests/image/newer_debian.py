"""Programs that Debian has in a newer release only: fetched from this machine's own mirror, and not installed.

apt does it, with lists of its own; so the machine's lists and packages stay as they are.
"""

import shutil
import subprocess
from pathlib import Path

from tests.servers import REPOSITORY
from tests.tools import tool

PLACE = REPOSITORY / "build/debian"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def newer_tool(name: str, suite: str) -> str:
    """Return the path of a program that Debian's package of the same name has in `suite`.

    If it can't be fetched, the test is skipped, or fails, as for `tool`.
    """
    unpacked = PLACE / suite / name
    found = shutil.which(name, path=f"{unpacked}/usr/bin")
    if found is None and shutil.which(name) is None:
        _fetch(name, suite, unpacked)
        found = shutil.which(name, path=f"{unpacked}/usr/bin")
    return found or tool(name, f"{name} of {suite}, which could not be fetched")


def _fetch(package: str, suite: str, place: Path) -> None:
    """Unpack a package at `place`, if apt can fetch it."""
    work = place.with_name(f".{package}.partial")
    shutil.rmtree(work, ignore_errors=True)
    (work / "lists" / "partial").mkdir(parents=True)
    settings = {
        "Dir::Etc::SourceList": work / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State::Lists": work / "lists",
        "Dir::Cache": work,
        "APT::Sandbox::User": "root",  # nobody else can write here
        "Acquire::Languages": "none",
    }
    options = [f"--option={name}={value}" for name, value in settings.items()]
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    mirrors = listed.stdout.split()
    if not mirrors or not KEYRING.exists():
        return
    (work / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirrors[0]} {suite} main\n")
    for command in (["update"], ["download", f"{package}/{suite}"]):
        apt = ["apt-get", "--quiet=2", *options, *command]
        if subprocess.run(apt, cwd=work, capture_output=True, timeout=300).returncode:
            return
    (archive,) = work.glob("*.deb")
    subprocess.run(["dpkg", "--extract", archive, work / "root"], check=True, timeout=60)
    shutil.rmtree(place, ignore_errors=True)
    (work / "root").rename(place)
    shutil.rmtree(work)
