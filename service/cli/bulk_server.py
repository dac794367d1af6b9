"""`dragoman bulk --server`: translates with a server instead of models in this process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence

from dragoman_client import AsyncClient, ClientError, Model, RequestFields
from service.bulk.pipeline import RowFault, RowResult, answers, row_result
from service.cli.options import Connection
from service.cli.pipeline import MAX_CALLS
from service.cli.streams import MAX_LINE_BYTES
from service.domain.translation import MAX_CHUNK_CHARACTERS, MAX_CHUNK_TEXTS, TranslationRequest
from service.process.event_loop import all_of

_FAULTS_OF_ROWS = ("INVALID_ARGUMENT", "NOT_FOUND")  # other errors are the server's or the caller's, and end the run


class ServedModels:
    """The models of a server, for `service.bulk.run`. The client repeats calls that a server has no room for."""

    def __init__(self, client: AsyncClient, fields: RequestFields, models: Sequence[Model]) -> None:
        self._client = client
        self._fields: RequestFields = {**fields, "keep_other_languages": True}
        self._models = models
        self._turns = asyncio.Semaphore(MAX_CALLS)

    def versions(self) -> dict[str, str]:
        """Return names, versions and precisions: a server does not tell what its models are made of."""
        return {f"{each.name}/{each.version}": each.precision for each in self._models}

    async def translate(
        self, texts: Sequence[str], source: str, target: str, request: TranslationRequest | None = None
    ) -> list[RowResult]:
        """Translate texts of one language pair, in order, with the fields of this class, of which `request` is made."""

        async def call(part: tuple[str, ...]) -> list[RowResult]:
            if len(part) == 1 and len(part[0].encode()) > MAX_LINE_BYTES:
                raise RowFault(f"the text is longer than {MAX_LINE_BYTES} bytes; split it into smaller ones.")
            try:
                async with self._turns:
                    found = await self._client.translate(part, source, target, **self._fields)
            except ClientError as error:
                if error.code in _FAULTS_OF_ROWS:
                    raise RowFault(str(error)) from None
                raise
            return [row_result(each, source) for each in found]

        found = await all_of(answers(call, part) for part in _parts(texts))
        return [result for part in found for result in part]


@contextlib.asynccontextmanager
async def served_models(
    connection: Connection, timeout_seconds: float, fields: RequestFields
) -> AsyncIterator[ServedModels]:
    async with connection.async_client(timeout_seconds) as client:
        yield ServedModels(client, fields, await client.models())


def _parts(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    part: list[str] = []
    num_characters = 0
    for text in texts:
        if part and (len(part) == MAX_CHUNK_TEXTS or num_characters + len(text) > MAX_CHUNK_CHARACTERS):
            yield tuple(part)
            part, num_characters = [], 0
        part.append(text)
        num_characters += len(text)
    if part:
        yield tuple(part)
