"""A repository of models in an object store, or whatever else fsspec knows by its URL. obstore reaches S3, Google's and
Azure's stores: one wheel without dependencies, where s3fs, gcsfs and adlfs bring some forty packages."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import fsspec
from obstore import exceptions
from obstore.fsspec import register

from service.bundle.errors import BundleError, one_line
from service.bundle.manifest import MANIFEST_NAME
from service.bundle.transfer.download import Unreachable, retried

_RANGE_BYTES = 8 << 20
_BY_OBSTORE = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl")
_LASTING = (  # another attempt would fail as well; obstore has made its own
    *(PermissionError, NotADirectoryError, IsADirectoryError, ImportError, TypeError, ValueError),
    exceptions.BaseError,
)

T = TypeVar("T")


class Store:
    """Files by their names relative to a URL. All methods raise `BundleError` if the store refuses or fails."""

    def __init__(self, url: str) -> None:
        register(list(_BY_OBSTORE))
        self._url = url.rstrip("/")
        self._files, self._root = self._ask(lambda: fsspec.url_to_fs(self._url))

    def __str__(self) -> str:
        return self._url

    def manifests(self) -> list[str]:
        found = self._ask(lambda: self._files.glob(f"{self._root}/*/*/{MANIFEST_NAME}"))
        return ["/".join(path.split("/")[-3:]) for path in found]

    def size(self, name: str) -> int | None:
        try:
            found: dict[str, Any] = self._ask(lambda: self._files.info(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None
        if not isinstance(found["size"], int):
            raise BundleError(f"{self}/{name}: the store does not report its size; use a folder or another store.")
        return found["size"] if found["type"] == "file" else None

    def read(self, name: str, start: int) -> Iterator[bytes]:
        size = self.size(name) or 0
        for begin in range(start, size, _RANGE_BYTES):
            end = min(begin + _RANGE_BYTES, size)
            data = self._ask(lambda: self._files.cat_file(f"{self._root}/{name}", start=begin, end=end))  # noqa: B023
            if len(data) > end - begin:
                raise BundleError(
                    f"{self}/{name}: the server does not support range requests; use another server or a folder."
                )
            yield data

    def _ask(self, request: Callable[[], T]) -> T:
        def attempt() -> T:
            try:
                return request()
            except FileNotFoundError:
                raise
            except _LASTING as error:
                raise BundleError(f"{self._url}: {_message(error)}.") from error
            except Exception as error:  # each store has errors of its own
                raise Unreachable(f"{self._url}: {_message(error)}") from error

        return retried(attempt)


def _message(error: Exception) -> str:
    """Return an error's message without what obstore adds for its own developers."""
    return one_line(error).partition(" Debug source:")[0].rstrip(".")
