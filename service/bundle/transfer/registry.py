"""One repository of a registry, by the OCI distribution API.

urllib does what is needed of it; the client `oras` would bring requests and jsonschema, and can't continue a blob.
https://github.com/opencontainers/distribution-spec
"""

import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from service.bundle.errors import BundleError, one_line
from service.bundle.transfer.credentials import basic_credentials
from service.bundle.transfer.download import Unreachable, retried

_REFERENCE = re.compile(
    r"(?P<registry>[A-Za-z0-9.-]+(?::\d+)?)/(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
_LOOPBACK = ("localhost", "127.0.0.1")  # which tools of containers reach without TLS, too
_CHUNK_BYTES = 1 << 20
_MOST_TOKEN_BYTES = 1 << 20
_SECONDS = 60.0  # to wait for the next bytes
_AGAIN = (408, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Reference:
    """An image in a registry: by digest, or by tag."""

    registry: str
    repository: str
    version: str  # a tag, or sha256:...

    @classmethod
    def parse(cls, text: str) -> "Reference":
        """Return what REGISTRY/REPOSITORY[:TAG][@DIGEST] names; the digest counts. The default tag is "latest"."""
        found = _REFERENCE.fullmatch(text)
        if found is None:
            raise BundleError(
                f"oci://{text[:200]} is no image; expected is oci://REGISTRY/REPOSITORY, with :TAG or @sha256:DIGEST."
            )
        registry, repository = found["registry"], found["repository"]
        if registry == "docker.io":
            registry, repository = "registry-1.docker.io", repository if "/" in repository else f"library/{repository}"
        return cls(registry, repository, found["digest"] or found["tag"] or "latest")

    @property
    def is_digest(self) -> bool:
        return ":" in self.version

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}{'@' if self.is_digest else ':'}{self.version}"


class Registry:
    """Manifests and blobs of a reference's repository. What they contain is not verified here.

    Raises, in all methods:
        BundleError: the registry refuses a request, or did not answer it after several attempts.
    """

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        is_local = reference.registry.partition(":")[0] in _LOOPBACK
        self._scheme = "http" if is_local else "https"
        self._base = f"{self._scheme}://{reference.registry}/v2/{reference.repository}"
        self._authorization = ""

    def manifest(self, version: str, media_types: tuple[str, ...], most: int) -> bytes:
        """Return the manifest of a tag or digest, of one of the media types and at most `most` bytes."""

        def attempt() -> bytes:
            try:
                with self._opened(f"manifests/{version}", {"Accept": ", ".join(media_types)}) as response:
                    return response.read(most + 1)
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(f"{self._reference}: {one_line(error)}") from error

        data = retried(attempt)
        if len(data) > most:
            raise BundleError(f"{self._reference}: the manifest has more than {most} bytes; this is no image.")
        return data

    def blob(self, digest: str, start: int) -> Iterator[bytes]:
        """Yield a blob's bytes from `start` on; end early if the connection fails."""
        headers = {"Range": f"bytes={start}-"} if start else {}
        response = retried(lambda: self._opened(f"blobs/{digest}", headers))
        with response:
            skip = start if response.status == 200 else 0  # a registry need not know ranges
            try:
                while chunk := response.read1(_CHUNK_BYTES):
                    skipped = min(skip, len(chunk))
                    skip -= skipped
                    if chunk := chunk[skipped:]:
                        yield chunk
            except (OSError, http.client.HTTPException):
                return

    def _opened(self, path: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        """Return the response to a GET, authorized if the registry asks for it."""
        url = f"{self._base}/{path}"
        try:
            return _get(url, headers, self._authorization)
        except urllib.error.HTTPError as error:
            if error.code != 401:
                raise self._failure(error) from error
            with error:
                challenge = error.headers.get("WWW-Authenticate", "")
        self._authorization = self._authorized(challenge)
        try:
            return _get(url, headers, self._authorization)
        except urllib.error.HTTPError as error:
            raise self._failure(error) from error

    def _authorized(self, challenge: str) -> str:
        """Return the Authorization that answers a challenge: https://distribution.github.io/distribution/spec/auth/."""
        kind, _, rest = challenge.partition(" ")
        basic = basic_credentials(self._reference.registry)
        basic = f"Basic {basic}" if basic else ""
        if kind.lower() != "bearer":
            return basic
        parameters = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        try:
            realm = urllib.parse.urlsplit(parameters.pop("realm", ""))
            if realm.scheme not in ("https", self._scheme) or not realm.hostname:
                raise BundleError(f"{self._reference}: the registry sends callers for a token to a place without TLS.")
            parameters.setdefault("scope", f"repository:{self._reference.repository}:pull")
            query = urllib.parse.urlencode(parameters)
            with _get(realm._replace(query=query).geturl(), {}, basic) as response:
                answer = json.loads(response.read(_MOST_TOKEN_BYTES))
            token = str(answer.get("token") or answer["access_token"])
            if not (token.isascii() and token.isprintable()):  # an error about such a header would print it
                raise ValueError("it has characters that no header may have")
            return f"Bearer {token}"
        except urllib.error.HTTPError as error:
            raise self._failure(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self._reference}: {one_line(error)}") from error
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            raise BundleError(f"{self._reference}: the registry's token can't be read: {one_line(error)}.") from error

    def _failure(self, error: urllib.error.HTTPError) -> Exception:
        with error:
            if error.code in _AGAIN:
                return Unreachable(f"{self._reference}: the registry answers {error.code} {error.reason}")
        advice = {
            401: "log in, and set DOCKER_CONFIG to the folder of the config.json that has the password",
            403: "ask for the right to pull it",
            404: "check its name, and that it was pushed",
        }.get(error.code, "ask the registry's operator")
        return BundleError(f"{self._reference}: the registry answers {error.code} {error.reason}; {advice}.")


def _get(url: str, headers: Mapping[str, str], authorization: str) -> http.client.HTTPResponse:
    """Return the response to a GET. The authorization stays with this host, also if it redirects."""
    request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310, the scheme is http or https
    if authorization:
        request.add_unredirected_header("Authorization", authorization)
    try:
        return urllib.request.urlopen(request, timeout=_SECONDS)  # type: ignore[no-any-return]  # noqa: S310
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:  # of an address that it redirects to
        raise Unreachable(f"{urllib.parse.urlsplit(url).netloc} can't be reached: {one_line(error)}") from error
