"""TLS and mTLS: who may connect, what rejected clients are told, and rotation without a failed call."""

import http.client
import ssl
from contextlib import closing
from pathlib import Path

import pytest

from dragoman_client import Client, NotSecure, Tls
from tests.callers import on_new_connections
from tests.certificates import Authority, Pair, replace
from tests.http_caller import call
from tests.servers import TIMEOUT_SECONDS, InProcessServer, Serve, eventually


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def trusted(authority: Authority, tmp_path: Path) -> Path:
    path = tmp_path / "authority.crt"
    path.write_bytes(authority.certificate)
    return path


@pytest.fixture
def pair(authority: Authority) -> Pair:
    return authority.pair(ends_days=1)


@pytest.fixture
def server(serve: Serve, pair: Pair, tmp_path: Path) -> InProcessServer:
    certificate, key = pair.write(tmp_path)
    return serve(tls_certificate=certificate, tls_key=key, http_port=0)


def served_certificates(server: InProcessServer) -> set[bytes]:
    """Return the certificates that new connections to the ports of callers are presented."""
    ports = server.server.port, server.server.http_port
    return {ssl.get_server_certificate(("127.0.0.1", port)).encode() for port in ports}


def ask_over_https(server: InProcessServer, trusted: Path, own: tuple[Path, Path] | None = None) -> int:
    """Make a call, with a certificate of one's own or none; return the status of the answer."""
    context = ssl.create_default_context(cafile=trusted)
    if own is not None:
        context.load_cert_chain(*own)
    netloc = f"localhost:{server.server.http_port}"
    with closing(http.client.HTTPSConnection(netloc, timeout=TIMEOUT_SECONDS, context=context)) as connection:
        connection.request("GET", "/v1/models")
        return connection.getresponse().status


def translate(client: Client) -> None:
    assert len(client.translate(["Hello", "train"], "en", "de")) == 2


def test_who_trusts_the_authority_is_served(server: InProcessServer, trusted: Path, pair: Pair) -> None:
    with server.client(tls=Tls(trusted)) as client:
        translate(client)
        assert client.models()
    assert ask_over_https(server, trusted) == 200
    with pytest.raises((ConnectionError, http.client.BadStatusLine)):
        call(server.http_url, "GET", "/v1/models")
    assert server.metric("dragoman_tls_certificate_not_after_seconds") == pair.not_after.timestamp()


def test_who_does_not_is_told_why_in_one_line(server: InProcessServer, trusted: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.crt"
    other.write_bytes(Authority("Somebody else").certificate)
    garbage = tmp_path / "garbage.crt"
    garbage.write_bytes(b"garbage")
    not_trusted = "the server's certificate is not trusted; name its certificate authority with Tls(authorities=...)."
    cases = {
        Tls(other): not_trusted,
        Tls(): not_trusted,
        Tls(garbage): "the files for TLS can't be used; they must be PEM, and certificate and key must match.",
    }
    for tls, reason in cases.items():
        with server.client(tls=tls) as client, pytest.raises(NotSecure) as raised:
            translate(client)
        assert str(raised.value) == f"no TLS connection to {server.address}: {reason}"
    with Client(server.address.replace("127.0.0.1", "localhost"), tls=Tls(trusted)) as client:
        translate(client)
    with server.client() as client, pytest.raises(NotSecure, match=r"closed the connection; if it uses TLS, give t"):
        translate(client)


def test_the_name_must_be_the_servers(serve: Serve, trusted: Path, pair: Pair, tmp_path: Path) -> None:
    certificate, key = pair.write(tmp_path)
    server = serve(tls_certificate=certificate, tls_key=key, host="127.0.0.3")
    other_name = r": the server's certificate is for another name; use the name in the certificate\.$"
    with (
        Client(f"127.0.0.3:{server.server.port}", tls=Tls(trusted)) as client,
        pytest.raises(NotSecure, match=other_name),
    ):
        translate(client)


def test_a_server_without_tls_is_told_from_one_with(serve: Serve, trusted: Path) -> None:
    server = serve()
    with (
        server.client(tls=Tls(trusted)) as client,
        pytest.raises(NotSecure, match=r"the server does not use TLS; connect wi"),
    ):
        translate(client)
    assert "dragoman_tls_certificate" not in server.get("/metrics")[2]  # 0 would look like an expired certificate


def test_a_server_can_ask_clients_for_certificates(
    serve: Serve, authority: Authority, pair: Pair, trusted: Path, tmp_path: Path
) -> None:
    certificate, key = pair.write(tmp_path)
    server = serve(tls_certificate=certificate, tls_key=key, tls_client_ca=trusted, http_port=0)
    good = authority.pair().write(tmp_path, "client")
    unknown = Authority("Somebody else").pair().write(tmp_path, "unknown")
    expired = authority.pair(ends_days=-0.5).write(tmp_path, "expired")
    with server.client(tls=Tls(trusted, *good)) as client:
        translate(client)
    for tls in (Tls(trusted), Tls(trusted, *unknown), Tls(trusted, *expired)):
        with server.client(tls=tls) as client, pytest.raises(NotSecure, match=r"with Tls\(certificate=.*, key=.*\)"):
            translate(client)
    assert ask_over_https(server, trusted, good) == 200
    for own in (None, unknown):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ask_over_https(server, trusted, own)
    new = Authority("The next authority")
    replace(trusted, new.certificate)  # which signs clients from now on
    theirs = new.pair().write(tmp_path, "new-client")
    roots = tmp_path / "roots.crt"
    roots.write_bytes(authority.certificate)

    def is_served() -> bool:
        with server.client(tls=Tls(roots, *theirs)) as client:
            try:
                translate(client)
            except NotSecure:
                return False
        return True

    eventually(is_served)
    with server.client(tls=Tls(roots, *good)) as client, pytest.raises(NotSecure):
        translate(client)


@pytest.mark.parametrize("num_rotations", [3, pytest.param(40, marks=pytest.mark.full)])
def test_rotation_under_load_fails_no_call(
    server: InProcessServer, authority: Authority, trusted: Path, tmp_path: Path, num_rotations: int
) -> None:
    with server.client(tls=Tls(trusted)) as old:
        translate(old)
        with on_new_connections(server.address, Tls(trusted)) as callers:
            for number in range(num_rotations):
                fresh = authority.pair(ends_days=2 + number)
                fresh.write(tmp_path)
                eventually(lambda fresh=fresh: served_certificates(server) == {fresh.certificate})  # type: ignore[misc]
                callers.wait_for_more(2)
                assert server.metric("dragoman_tls_certificate_not_after_seconds") == fresh.not_after.timestamp()
        assert callers.failures == []
        translate(old)  # its connection was opened under the first certificate
