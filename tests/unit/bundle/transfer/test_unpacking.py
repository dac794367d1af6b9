"""Layers from strangers: nothing leaves the folder, and nothing grows without bound."""

import gzip
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from service.bundle.errors import BundleError
from service.bundle.transfer import unpacking
from service.bundle.transfer.unpacking import unpack
from tests.patience import patient
from tests.servers import REPOSITORY

GOOD = "tiny/1/weights.bin"


def member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, target: str = "") -> bytes:
    """Return a header and its data, as tar has them."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size = kind, target, len(data)
    return entry.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % tarfile.BLOCKSIZE)


def written(folder: Path, *members: bytes) -> Path:
    path = folder / "layer"
    path.write_bytes(b"".join(members) + bytes(2 * tarfile.BLOCKSIZE))
    return path


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_files_arrive(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    large = bytes(range(256)) * 10_000
    members = [member("tiny", kind=tarfile.DIRTYPE), member(f"./{GOOD}", large), member("tiny/1/a/b", b"x" * 512)]
    layer = written(tmp_path, *members)
    layer.write_bytes(pack(layer.read_bytes()))
    unpack(layer, tmp_path / "files", "it")
    assert (tmp_path / "files" / GOOD).read_bytes() == large
    assert (tmp_path / "files/tiny/1/a/b").read_bytes() == b"x" * 512


@pytest.mark.parametrize(
    "name",
    [
        *(
            "../evil",
            "/tmp/evil",
            "/1/evil",
            "tiny/1/../../../evil",
            "tiny/../../evil/1/x",
            "tiny/1/..",
            "..",
            "tiny\\1\\evil",
        ),
        *("evil", "tiny/evil", "tiny/one/evil", "tiny/1", ".layers/1/evil", ".wh.tiny/1/x", "tiny/\u00b2/x"),
        *("tiny/1/a\nb", f"tiny/1/{'a' * 300}"),
    ],
)
def test_a_file_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    layer = written(tmp_path, member(GOOD, b"x"), member(name, b"evil"))
    with pytest.raises(BundleError, match="allowed are plain files <model>/<version>/<file>"):
        unpack(layer, tmp_path / "files", "it")
    assert [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != layer] == [b"x"]


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../x", "weights.bin"])
@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(kind: bytes, target: str, tmp_path: Path) -> None:
    layer = written(tmp_path, member(GOOD, b"x"), member("tiny/1/link", kind=kind, target=target))
    with pytest.raises(BundleError, match=r"it has 'tiny/1/link'; allowed are plain files"):
        unpack(layer, tmp_path / "files", "it")


def test_a_file_is_written_once(tmp_path: Path) -> None:
    for second in (member(GOOD, b"y"), member(f"{GOOD}/x", b"y")):
        with pytest.raises(BundleError, match="twice"):
            unpack(written(tmp_path, member(GOOD, b"x"), second), tmp_path / "files", "it")
        (tmp_path / "files" / GOOD).unlink()


@pytest.mark.parametrize("kept", [0, 100, 512, 700, 1023])
def test_a_layer_that_ends_early_or_is_none(kept: int, tmp_path: Path) -> None:
    layer = written(tmp_path, member(GOOD, b"x" * 1000))
    layer.write_bytes(layer.read_bytes()[:kept])
    with pytest.raises(BundleError, match="is neither tar nor tar with gzip"):
        unpack(layer, tmp_path / "files", "it")


@pytest.mark.parametrize("data", [b"\x28\xb5\x2f\xfd zstd", b"\x1f\x8b", b"\x1f\x8b no gzip", b"x" * 10_000])
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "layer").write_bytes(data)
    with pytest.raises(BundleError, match="is neither tar nor tar with gzip"):
        unpack(tmp_path / "layer", tmp_path / "files", "it")


def test_a_file_of_giant_size_is_refused_unread(tmp_path: Path) -> None:
    entry = tarfile.TarInfo(GOOD)
    entry.size = 1 << 50
    layer = written(tmp_path, entry.tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(BundleError, match="unpacks to more than"):
        unpack(layer, tmp_path / "files", "it")
    assert not (tmp_path / "files").exists()


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    """A few bytes of tar would become as many zeros as it says."""
    entry = tarfile.TarInfo(GOOD)
    entry.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"00000000000\x0000000000000\x00"[:24]
    header[483:495] = b"00010000000\x00"  # its real size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\x00 " % sum(header)
    with pytest.raises(BundleError, match="allowed are plain files"):
        unpack(written(tmp_path, bytes(header)), tmp_path / "files", "it")


def test_a_bomb_of_gzip_is_refused(tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    with gzip.open(layer, "wb", compresslevel=1) as file:
        file.write(member(GOOD, bytes(80 << 20)))
    with pytest.raises(BundleError, match="unpacks to more than"):
        unpack(layer, tmp_path / "files", "it")


def test_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_MOST_MEMBERS", 100)
    layer = written(tmp_path, *(member(f"tiny/1/{number}") for number in range(101)))
    with pytest.raises(BundleError, match="100 files"):
        unpack(layer, tmp_path / "files", "it")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_of_giant_size_takes_no_memory(kind: bytes, tmp_path: Path) -> None:
    """tarfile reads these at once: 2 GiB of zeros, which gzip makes 2 MB of."""
    entry = tarfile.TarInfo("././@LongLink")
    entry.type, entry.size = kind, 2 << 30
    layer = tmp_path / "layer"
    layer.write_bytes(gzip.compress(entry.tobuf(tarfile.GNU_FORMAT) + bytes(10 << 20)))
    program = (
        "import resource, sys; from pathlib import Path; from service.bundle.transfer.unpacking import unpack\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({1 << 30}, {1 << 30}))\n"
        "unpack(Path(sys.argv[1]), Path(sys.argv[2]), 'it')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, layer, tmp_path / "files"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert "BundleError: it is neither tar nor tar with gzip: its headers have more than" in run.stderr


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_negative_size_is_refused(kind: bytes, tmp_path: Path) -> None:
    """It would take from the sum of all sizes, or have a header read all the rest of the file."""
    entry = tarfile.TarInfo(GOOD)
    entry.type, entry.size = kind, -512
    layer = written(tmp_path, member("tiny/1/first", b"x"), entry.tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(BundleError, match="is neither tar nor tar with gzip"):
        unpack(layer, tmp_path / "files", "it")


def test_headers_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_MOST_HEADER_BYTES", 1 << 20)
    header = member("x", b"200000 x=" + bytes(199_990) + b"\n", tarfile.XHDTYPE)
    members = [header + member(f"tiny/1/{number}", b"x" * 200_000) for number in range(6)]
    unpack(written(tmp_path, *members[:4]), tmp_path / "files", "it")
    with pytest.raises(BundleError, match="its headers have more than 1048576 bytes"):
        unpack(written(tmp_path, *members), tmp_path / "more", "it")


def test_headers_of_headers_are_refused(tmp_path: Path) -> None:
    layer = written(tmp_path, member("x", b"tiny/1/x", tarfile.GNUTYPE_LONGNAME) * 2000, member(GOOD))
    with pytest.raises(BundleError, match="is neither tar nor tar with gzip: maximum recursion depth"):
        unpack(layer, tmp_path / "files", "it")
