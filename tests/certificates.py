"""Certificates for TLS tests, made with `cryptography`."""

import datetime
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_ADDRESSES = ("127.0.0.1", "127.0.0.2")  # the second is loopback, too, but nobody makes exceptions for it
_NAMES = [x509.DNSName("localhost"), *(x509.IPAddress(ipaddress.ip_address(address)) for address in _ADDRESSES)]
KINDS: dict[str, Any] = {
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "short RSA": lambda: rsa.generate_private_key(65537, 1024),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes
    not_after: datetime.datetime

    def write(self, folder: Path, name: str = "server") -> tuple[Path, Path]:
        """Write each file atomically, the certificate first, as operators who rotate certificates should."""
        paths = folder / f"{name}.crt", folder / f"{name}.key"
        for path, content in zip(paths, (self.certificate, self.key), strict=True):
            replace(path, content)
        return paths


def replace(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, and rename it into place."""
    beside = path.with_suffix(".new")
    beside.write_bytes(content)
    beside.chmod(0o600)
    os.replace(beside, path)  # noqa: PTH105


class Authority:
    """Signs certificates for localhost."""

    def __init__(self, name: str = "Test authority") -> None:
        self._key = KINDS["P-256"]()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self._name, self._key, -1, 10, is_authority=True).public_bytes(Encoding.PEM)

    def pair(
        self, *, kind: str = "P-256", starts_days: float = -1, ends_days: float = 10, password: bytes = b""
    ) -> Pair:
        key = KINDS[kind]()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        certificate = self._sign(name, key, starts_days, ends_days, is_authority=False)
        encryption = BestAvailableEncryption(password) if password else NoEncryption()
        return Pair(
            certificate.public_bytes(Encoding.PEM),
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption),
            certificate.not_valid_after_utc,
        )

    def _sign(
        self, name: x509.Name, key: Any, starts_days: float, ends_days: float, *, is_authority: bool
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=starts_days))
            .not_valid_after(now + datetime.timedelta(days=ends_days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(_NAMES), critical=False)
            .sign(self._key, hashes.SHA256())
        )
