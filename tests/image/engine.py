"""A container engine with temporary storage of its own: podman and buildah, without a daemon."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.tools import tool

STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
# runc, since crun rejects the mixed cgroups of some machines; cgroupfs and file, since there may be no systemd.
# Pods can't say their limits of files and processes; those of some machines are lower than podman's own defaults.
CONTAINERS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[network]
network_backend = "netavark"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""


class CommandFailed(Exception):
    """A command of the engine did not exit with 0; the message has the end of its output."""


class ContainerEngine:
    """Runs podman and buildah; `close` ends its containers and removes everything it has stored."""

    def __init__(self) -> None:
        assert os.geteuid() == 0, "images are built and run by root here; try sudo make test-image"
        self._programs = {name: tool(name, name) for name in ("podman", "buildah", "runc")}
        self.folder = Path(tempfile.mkdtemp(prefix="dragoman-image-"))
        (self.folder / "storage.conf").write_text(STORAGE.format(folder=self.folder))
        (self.folder / "containers.conf").write_text(CONTAINERS)
        self._environment = os.environ | {
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "TMPDIR": str(self.folder),  # build caches
        }

    def podman(self, *arguments: str | Path, timeout_seconds: float = 60.0) -> str:
        """Run `podman ...` and return standard output; raise `CommandFailed` if it fails or takes too long."""
        return self._run(self._programs["podman"], *arguments, timeout_seconds=timeout_seconds)

    def buildah(self, *arguments: str | Path, timeout_seconds: float = 60.0) -> str:
        """Run `buildah ...` in the same way."""
        return self._run(self._programs["buildah"], *arguments, timeout_seconds=timeout_seconds)

    def logs(self, container: str) -> str:
        """Return what a container wrote to standard output and standard error."""
        run = subprocess.run(
            [self._programs["podman"], "logs", container],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=True,
        )
        return run.stdout.strip()

    def close(self) -> None:
        for command in (("podman", "rm", "--all", "--force", "--time", "0"), ("buildah", "rm", "--all")):
            subprocess.run([self._programs[command[0]], *command[1:]], env=self._environment, capture_output=True)
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for path in reversed([path for path in mounted if path.startswith(f"{self.folder}/")]):
            subprocess.run(["umount", "--lazy", path], check=True)
        shutil.rmtree(self.folder)

    def _run(self, *command: str | Path, timeout_seconds: float) -> str:
        # In a process group of their own, so that their children end with them.
        with subprocess.Popen(
            command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=timeout_seconds)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode:
            said = "\n".join((out + err).splitlines()[-40:])
            raise CommandFailed(f"{' '.join(map(str, command))} exited with {process.returncode}:\n{said}")
        return out.strip()
