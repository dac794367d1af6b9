"""Reading of a server's certificate: its validity and its kind of key. The only importer of cryptography.

The standard library can't read the dates of one's own certificate: `getpeercert` describes verified peers,
`get_ca_certs` only authorities. Import this module only with TLS enabled: `cryptography` takes 0.1 s and 16 MB.
"""

from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import PublicKeyAlgorithmOID

# gRPC's TLS also loads other curves and Ed25519, but then fails every handshake.
_CURVES = (ec.SECP256R1, ec.SECP384R1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Validity of a certificate, and whether gRPC supports its kind of key."""

    not_before: datetime
    not_after: datetime
    has_usable_key: bool


def read_certificate(pem: bytes) -> Certificate:
    """Read the first certificate of a PEM file, the server's own; raise `ValueError` if there is none."""
    found = x509.load_pem_x509_certificate(pem)
    return Certificate(found.not_valid_before_utc, found.not_valid_after_utc, _has_usable_key(found))


def _has_usable_key(certificate: x509.Certificate) -> bool:
    if certificate.public_key_algorithm_oid == PublicKeyAlgorithmOID.RSAES_PKCS1_v1_5:
        return True
    try:
        key = certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return False
    return isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, _CURVES)
