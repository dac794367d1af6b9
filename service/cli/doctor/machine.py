"""Checks of the machine: CPUs, kernels, memory, files, clock and language; its ports; ONNX Runtime and GPUs."""

import ctypes
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from service.cli.doctor.finding import Finding, fail, ok, warn
from service.config.server_config import ServerConfig
from service.domain.errors import counted
from service.process.ports import PortError, check_port, join_address

_MIB, _GIB = 2**20, 2**30
_TMP_BYTES = 64 * _MIB
_PROCESS_BYTES = 0.3 * _GIB  # the server itself (docs/sizing.md)
_CLOCK_UNSYNCHRONISED = 5  # TIME_ERROR of adjtimex(2)
_LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp; see proc_net_tcp(5)
_DISTRIBUTIONS = ("onnxruntime", "onnxruntime-gpu")


def cpus(config: ServerConfig, cpuinfo: Path = Path("/proc/cpuinfo")) -> Iterator[Finding]:
    from service.engine.cpus import available_cpus

    available, online = available_cpus(), os.cpu_count() or 1
    threads = config.num_threads or available
    value = f"{_cpu_name(cpuinfo)}, {available} of {counted(online, 'CPU')} available, {counted(threads, 'thread')}"
    if threads > available:
        yield warn("cpu", value, f"threads wait for each other; set --num-threads to {available} at most.")
    else:
        yield ok("cpu", value)


def load(busy: float | None = None) -> Iterator[Finding]:
    """Yield whether other processes leave CPUs to a server; `busy` is how many wanted one in the last minute."""
    online = os.cpu_count() or 1
    busy = os.getloadavg()[0] if busy is None else busy
    value = f"{busy:.1f} processes wanted a CPU in the last minute; there are {online}"
    if busy < online:
        yield ok("load", value)
    else:
        advice = (
            "stop other processes; at startup, a server measures how many slots help (--max-slots: docs/tuning.md)."
        )
        yield warn("load", value, advice)


def kernels() -> Iterator[Finding]:
    from service.engine.runtime.kernels import CHOICE, KernelsUnavailable, find_kernels

    try:
        found = find_kernels()
    except KernelsUnavailable as error:
        yield fail("kernels", str(error), "without them no int8 model is served.")
        return
    if found.instruction_set == "portable":
        advice = f"unset {CHOICE}." if os.environ.get(CHOICE) else "take a CPU with AVX2, or NEON's dot products."
        yield warn("kernels", "portable: plain C++, which is slow", advice)
    else:
        yield ok("kernels", found.instruction_set)


def memory(sizes: Sequence[int], config: ServerConfig, meminfo: Path = Path("/proc/meminfo")) -> Iterator[Finding]:
    from service.observe.own_memory import memory_limit_bytes

    limit, available = memory_limit_bytes(), _available_bytes(meminfo)
    there = min(limit, available)
    source = "the container's limit" if limit <= available else "free on this machine"
    if math.isinf(there):
        yield warn("memory", "unknown", "make sure that it is enough: docs/sizing.md.")
        return
    value = f"{_size(there)} ({source})"
    if not sizes:
        yield ok("memory", value)
        return
    needed = _needed_bytes(sizes, config.cache_mib * _MIB)
    value += f", for {_size(sum(sizes))} of bundles"
    if there < sum(sizes):
        yield fail("memory", value, f"they don't fit; give {_size(needed)} and more for slots, or serve fewer models.")
    elif there < needed:
        yield warn("memory", value, f"{_size(needed)} and more for slots leave room for reloads (docs/sizing.md).")
    else:
        yield ok("memory", value)


def huge_pages(
    sizes: Sequence[int], enabled: Path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
) -> Iterator[Finding]:
    """Yield whether large weights can lie in huge pages; nothing where that does not matter or is not known."""
    try:
        chosen = enabled.read_text(encoding="ascii").partition("[")[2].partition("]")[0]
    except (OSError, ValueError):
        return
    is_large = max(sizes, default=0) > 16 * _MIB  # weights don't fit into the CPU's caches (docs/tuning.md)
    if chosen == "never" and is_large:
        yield warn("huge pages", "never", f"steps of large models take 2 to 6 % longer; echo madvise > {enabled}")
    else:
        yield ok("huge pages", chosen or "unknown")


def open_files(config: ServerConfig) -> Iterator[Finding]:
    from service.process.ports import affordable_connections

    ports = 1 + (config.http_port >= 0)
    affordable = affordable_connections(config.max_connections, ports)
    value = f"{affordable} connections for each of {ports} ports" if ports > 1 else f"{affordable} connections"
    if affordable < config.max_connections:
        wanted = config.max_connections * ports + 256
        yield warn("open files", f"enough for {value}", f"for {config.max_connections} raise it: ulimit -n {wanted}.")
    else:
        yield ok("open files", f"enough for {value}")


def temporary_files(config: ServerConfig) -> Iterator[Finding]:
    """Yield whether there is a folder for temporary files, which documents need, with some room."""
    is_needed = config.http_port >= 0
    try:
        folder = Path(tempfile.gettempdir())
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
        status = os.statvfs(folder)
    except OSError as error:
        what, advice = f"can't be written: {error.strerror or error}", "set TMPDIR to a folder that can be written."
        yield fail("tmp", what, advice) if is_needed else warn("tmp", what, advice)
        return
    free = status.f_bavail * status.f_frsize
    if free < _TMP_BYTES:
        yield warn("tmp", f"{folder} has {_size(free)} left", f"documents need {_size(_TMP_BYTES)}.")
    else:
        yield ok("tmp", f"{folder} can be written, {_size(free)} left")


def clock(state: int | None = None) -> Iterator[Finding]:
    """Yield whether the clock is kept right, for certificates, keys that expire and logs; `state` is adjtimex's."""
    if state is None:
        adjust = getattr(ctypes.CDLL(None), "adjtimex", None)
        if adjust is None:
            return
        state = int(adjust(ctypes.create_string_buffer(512)))  # more than its struct has anywhere; zeros: it only reads
    if state < 0:
        return  # a sandbox forbids it
    if state == _CLOCK_UNSYNCHRONISED:
        yield warn("clock", "not synchronised", "certificates, keys and logs depend on it: run chrony or timesyncd.")
    else:
        yield ok("clock", "synchronised")


def texts(encoding: str | None = None) -> Iterator[Finding]:
    """Yield whether names of files and what is printed are UTF-8."""
    found = encoding or sys.getfilesystemencoding()
    if found.lower().replace("-", "") != "utf8":
        yield warn("locale", found, "names and output beyond ASCII are lost; set LC_ALL=C.UTF-8.")
    else:
        yield ok("locale", found)


def _cpu_name(cpuinfo: Path) -> str:
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return os.uname().machine
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, os.uname().machine)


def _available_bytes(meminfo: Path) -> float:
    try:
        for line in meminfo.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    return math.inf


def _needed_bytes(bundles: Sequence[int], cache: int) -> int:
    """Return the bytes for bundles of these sizes, but for their slots, by the formula of docs/sizing.md."""
    needed = 2 * sum(bundles) + max(bundles) + cache + _PROCESS_BYTES
    step = 256 * _MIB
    return math.ceil(needed / step) * step


def _size(num_bytes: float) -> str:
    return f"{num_bytes / _GIB:.1f} GiB" if num_bytes >= _GIB else f"{num_bytes / _MIB:.0f} MiB"


def ports(config: ServerConfig) -> Iterator[Finding]:
    for purpose, host, port, flag in (
        ("gRPC", config.host, config.port, "--port"),
        ("HTTP", config.http_host, config.http_port, "--http-port"),
        ("metrics", config.metrics_host, config.metrics_port, "--metrics-port"),
        ("status page", config.admin_host, config.admin_port, "--admin-port"),
    ):
        if port < 0:
            continue
        address = join_address(host, port)
        try:
            check_port(host, port, purpose, flag)
        except PortError as error:
            user = listener(port)
            yield fail("port", str(error), f"it is used by {user}." if user else "")
        else:
            yield ok("port", f"{address} is free for {purpose}" if port else f"any free one for {purpose}")


def listener(port: int, processes: Path = Path("/proc")) -> str:
    """Return the name and number of the process that listens on a port; empty if this user can't see it."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (processes / "net" / table).read_text(encoding="ascii").splitlines()[1:]:
                _, local, _, state, *rest = line.split()
                if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                    sockets.add(f"socket:[{rest[5]}]")
    for process in processes.iterdir() if sockets else ():
        with suppress(OSError):
            if process.name.isdecimal() and any(str(each.readlink()) in sockets for each in (process / "fd").iterdir()):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"{name}, process {process.name}"
    return ""


def onnxruntime(config: ServerConfig, installed: Sequence[str] | None = None) -> Iterator[Finding]:
    """Yield the version, whether two of its distributions are in each other's way, and whether the device works."""
    from service.engine.runtime.session import DeviceUnavailable, check_device
    from service.server.optional_parts import onnxruntime_version

    found = [name for name in _DISTRIBUTIONS if _is_installed(name)] if installed is None else installed
    if len(found) > 1:
        yield fail("onnxruntime", f"{' and '.join(found)} are installed", "they share files: uninstall both, then one.")
    try:
        check_device(config.device)
    except DeviceUnavailable as error:
        yield fail("device", str(error))
    else:
        yield ok("onnxruntime", f"{onnxruntime_version()} works on device {config.device}")


def gpu(config: ServerConfig, devices: Path = Path("/dev"), library: str = "libcuda.so.1") -> Iterator[Finding]:
    nodes = sorted(each.name for each in devices.glob("nvidia[0-9]*"))
    has_driver = _can_load(library)
    if config.device == "cpu":
        if nodes:
            yield ok("gpu", f"{', '.join(nodes)}; not used, as the device is cpu")
        return
    if not nodes:
        yield fail("gpu", f"no {devices}/nvidia0", "give the container its GPU (docs/cuda.md), or take --device cpu.")
    if not has_driver:
        yield fail(
            "gpu", f"the driver's {library} can't be loaded", "install NVIDIA's driver, or its container toolkit."
        )
    if nodes and has_driver:
        yield ok("gpu", f"{', '.join(nodes)}, with a driver")


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
