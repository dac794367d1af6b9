"""Which certificates and keys the server accepts, and its errors about others."""

import logging
from pathlib import Path

import pytest
from cryptography import x509

from service.config.server_config import ServerConfig
from service.config.watched_files import FileProblem
from service.faces.grpc.certificate import read_certificate
from service.faces.grpc.tls import ServerTls, tls_of
from tests.certificates import Authority, Pair, replace


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.mark.parametrize(("kind", "is_usable"), [("P-256", True), ("P-384", True), ("RSA", True), ("Ed25519", False)])
@pytest.mark.parametrize("ends_days", [10, 40 * 365])  # of the two forms of times in certificates
def test_dates_and_kind_are_as_cryptography(authority: Authority, kind: str, is_usable: bool, ends_days: float) -> None:
    pem = authority.pair(kind=kind, ends_days=ends_days).certificate
    theirs, ours = x509.load_pem_x509_certificate(pem), read_certificate(b"bag attributes\n" + pem)
    assert (ours.not_before, ours.not_after) == (theirs.not_valid_before_utc, theirs.not_valid_after_utc)
    assert ours.has_usable_key is is_usable


@pytest.mark.parametrize(
    "pem", [b"", b"-----BEGIN CERTIFICATE-----\n", b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"]
)
def test_what_is_no_certificate_is_a_value_error(pem: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_certificate(pem)


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"ends_days": -0.5}, r"server\.crt expired at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC; renew it\.$"),
        ({"starts_days": 1}, r"server\.crt is not valid before .* UTC; check this machine's clock\.$"),
        ({"kind": "Ed25519"}, r"server\.crt has a key that gRPC can't use; supported: RSA and the curves P-2"),
        ({"kind": "P-521"}, r"server\.crt has a key that gRPC can't use"),
        ({"kind": "short RSA"}, r"server\.crt has too short a key; RSA takes 2048 bits or more\.$"),
        ({"password": b"secret"}, r"can't be used; both must be PEM, the key without a password\.$"),
    ],
)
def test_an_unusable_pair_is_refused(
    authority: Authority, tmp_path: Path, wishes: dict[str, object], message: str
) -> None:
    with pytest.raises(FileProblem, match=message):
        ServerTls(*authority.pair(**wishes).write(tmp_path))  # type: ignore[arg-type]


def test_files_that_do_not_fit_are_named(authority: Authority, tmp_path: Path) -> None:
    pair, other = authority.pair(), authority.pair()
    certificate, key = Pair(pair.certificate, other.key, pair.not_after).write(tmp_path)
    with pytest.raises(FileProblem, match=r"server\.key is not the key of .*server\.crt; give a certificate and its"):
        ServerTls(certificate, key)
    pair.write(tmp_path)
    with pytest.raises(FileProblem, match=r"gone\.crt \(the TLS certificate\) can't be read: No such file"):
        ServerTls(tmp_path / "gone.crt", key)
    with pytest.raises(FileProblem, match=r"server\.key holds no certificate; it must be PEM"):
        ServerTls(key, key)
    with pytest.raises(FileProblem, match=r"server\.key holds no certificates of authorities; it must be PEM"):
        ServerTls(certificate, key, key)


def test_without_its_settings_there_is_none() -> None:
    assert tls_of(ServerConfig()) is None


def test_only_a_good_pair_replaces_another(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = authority.pair(ends_days=1), authority.pair(ends_days=2)
    certificate, key = first.write(tmp_path)
    tls = ServerTls(certificate, key)
    assert not tls.refresh()
    assert tls.not_after_seconds == first.not_after.timestamp()
    replace(certificate, second.certificate)
    assert not tls.refresh()  # the key is still the first's
    assert not caplog.records  # most rotations look like this for a moment
    replace(key, second.key)
    assert tls.refresh()
    assert tls.not_after_seconds == second.not_after.timestamp()
    assert not caplog.records
    for name, content in (("garbage", b"garbage"), ("an expired one", authority.pair(ends_days=-0.5).certificate)):
        replace(certificate, content)
        for _ in range(5):
            assert not tls.refresh(), name
        (record,) = caplog.records
        assert record.levelno == logging.ERROR
        assert record.getMessage().endswith("The previous contents stay in use.")
        caplog.clear()
    certificate.unlink()
    for _ in range(5):
        assert not tls.refresh()
    assert len(caplog.records) == 1
    assert tls.not_after_seconds == second.not_after.timestamp()
    first.write(tmp_path)
    assert tls.refresh()


def test_a_key_for_everybody_is_warned_of(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = authority.pair().write(tmp_path)
    ServerTls(certificate, key)
    assert not caplog.records
    key.chmod(0o644)
    ServerTls(certificate, key)
    (record,) = caplog.records
    assert "can be read by every user of this machine" in record.getMessage()
