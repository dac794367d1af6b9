"""What a server must know of its certificate: when it is valid, and of what kind its key is.

The standard library checks that a key belongs to a certificate, but has no public way to ask a certificate of one's own
for its dates (`getpeercert` tells of verified peers, `get_ca_certs` of authorities only), and `cryptography` would be a
large dependency for two dates. Their place in X.509 is fixed (RFC 5280, 4.1), so this reads the DER as far as that.
"""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

_VERSION, _UTC_TIME = 0xA0, 0x17  # tags; other times are written with four digits of the year
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
# Encoded object identifiers. gRPC's TLS takes others, such as P-521 and Ed25519, and then fails every handshake.
_RSA = bytes.fromhex("2a864886f70d010101")
_ELLIPTIC = bytes.fromhex("2a8648ce3d0201")
_CURVES = {bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2b81040022")}  # P-256, P-384


@dataclass(frozen=True, slots=True)
class Certificate:
    """When a certificate is valid, and whether gRPC can serve with a key of its kind."""

    not_before: datetime
    not_after: datetime
    has_usable_key: bool


def read_certificate(pem: str) -> Certificate:
    """The first certificate of a PEM file, which is the server's own.

    Raises:
        ValueError: there is none.
    """
    start = pem.index(_BEGIN)
    der = ssl.PEM_cert_to_DER_cert(pem[start : pem.index(_END, start) + len(_END)])
    try:
        (_, whole), *_ = _elements(der)
        (_, to_be_signed), *_ = _elements(whole)
        fields = [each for each in _elements(to_be_signed) if each[0] != _VERSION]
        _, _, _, (_, validity), _, (_, key_info), *_ = fields  # serial, signature, issuer, validity, subject, key
        not_before, not_after = (_time(*each) for each in _elements(validity))
        (_, algorithm), *_ = _elements(key_info)
        return Certificate(not_before, not_after, _is_usable(algorithm))
    except IndexError as error:
        raise ValueError("it ends too early") from error


def _is_usable(algorithm: bytes) -> bool:
    (_, kind), *parameters = _elements(algorithm)
    return kind == _RSA or (kind == _ELLIPTIC and parameters[0][1] in _CURVES)


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents of what stands one after the other."""
    position = 0
    while position < len(der):
        tag, length = der[position], der[position + 1]
        position += 2
        if length & 0x80:  # the length of the length
            size = length & 0x7F
            length = int.from_bytes(der[position : position + size])
            position += size
        yield tag, der[position : position + length]
        position += length


def _time(tag: int, content: bytes) -> datetime:
    text = content.decode("ascii")
    if tag == _UTC_TIME:  # of 1950 to 2049
        text = ("19" if text >= "5" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
