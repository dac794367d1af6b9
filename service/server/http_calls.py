"""Wiring of the HTTP port: the routes of each API, on the way of all calls."""

import ssl
from collections.abc import Callable, Sequence
from typing import Protocol

from service.calls.open_calls import ByteBudget, OpenCalls
from service.calls.pipeline import CallPipeline
from service.config.server_config import ServerConfig
from service.faces.deepl.documents import Documents
from service.faces.deepl.http import DeepL
from service.faces.dragoman.http import V1
from service.faces.google.http import Google
from service.faces.http.calls import HttpCalls
from service.faces.http.intake import HttpLimits
from service.faces.http.listener import CallListener
from service.faces.http.open_connections import ConnectionLimits
from service.faces.http.routes import Route, Routes, with_single_slashes
from service.faces.http.same_site import Cors, page_rules
from service.faces.kserve.http import KServe
from service.faces.kserve.methods import KServeMethods
from service.faces.libretranslate.http import Files, LibreTranslate
from service.faces.openai.http import OpenAI
from service.faces.page.translation import CallersPage, Limits
from service.jobs.background import BackgroundWork
from service.jobs.keeper import DocumentKeeper
from service.jobs.reading import DocumentReaders
from service.jobs.translation import DocumentTranslator
from service.process.ports import bound_port
from service.translation.translator import Translator


class Face(Protocol):
    """An API over HTTP."""

    def routes(self) -> Sequence[Route]: ...


def routes_of(
    config: ServerConfig,
    translator: Translator,
    kserve: KServeMethods,
    pipeline: CallPipeline,
    background: BackgroundWork,
    kept: DocumentKeeper,
) -> Routes:
    deadline_seconds = config.default_deadline_seconds
    documents = DocumentTranslator(translator, DocumentReaders(translator.limits.max_characters))
    prefix, scheme = (
        with_single_slashes(config.http_prefix).removesuffix("/"),
        "https" if config.tls_certificate else "http",
    )
    faces: Sequence[Face] = (
        V1(translator, documents, deadline_seconds, prefix),
        LibreTranslate(
            translator,
            deadline_seconds,
            Files(documents, kept, url=config.http_url, prefix=prefix, own_host=config.http_host, scheme=scheme),
            asks_for_keys=pipeline.asks_for_keys,
        ),
        DeepL(translator, deadline_seconds, Documents(documents, kept, background, translator.glossaries)),
        Google(translator, deadline_seconds),
        KServe(kserve, deadline_seconds),
        OpenAI(translator, deadline_seconds),
        CallersPage(Limits(config.max_characters, config.max_request_bytes)),
    )
    return Routes((route for face in faces for route in face.routes()), prefix)


def call_listener(
    config: ServerConfig,
    routes: Routes,
    pipeline: CallPipeline,
    open_calls: OpenCalls,
    budget: ByteBudget,
    is_closing: Callable[[], bool],
    is_draining: Callable[[], bool],
    tls: ssl.SSLContext | None,
    max_connections: int,
    refused: Callable[[], None],
) -> CallListener:
    port = bound_port(config.http_host, config.http_port, "calls over HTTP", "--http-port", is_shared=config.reuse_port)
    limits = HttpLimits(config.max_request_bytes, budget)
    rules = page_rules(
        config.http_origin,
        config.http_host,
        asks_for_keys=pipeline.asks_for_keys,
        takes_anyone=config.http_without_keys,
    )
    app = HttpCalls(routes, pipeline, open_calls, limits, is_closing, is_draining, Cors(config.http_origin), rules)
    # Idle as long as nginx keeps them: clients that pool connections must rarely find one that is closed.
    of_port = ConnectionLimits(max_connections, idle_seconds=75.0, cancels=True)
    return CallListener(port, app, of_port, tls, refused)
