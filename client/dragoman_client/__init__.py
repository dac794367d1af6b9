"""The Python client of Dragoman, a translation server.

from dragoman_client import Client

with Client("127.0.0.1:50051") as client:
    [translation] = client.translate(["Where is the train station?"], "en", "de")
"""

from dragoman_client.async_client import AsyncClient
from dragoman_client.client import Client
from dragoman_client.connection import DEFAULT_SERVER, Tls
from dragoman_client.errors import ClientError, HttpPort, NoServer, NotSecure, TlsAdvice
from dragoman_client.options import MimeType, Options, Placeholder, Priority, SplitSentences, Term
from dragoman_client.request import RequestFields
from dragoman_client.targets import Target, target_of
from dragoman_client.translation import (
    AlignedSpan,
    DetectedLanguage,
    FinishReason,
    Flag,
    Hypothesis,
    Model,
    Segment,
    StreamEvent,
    Translation,
)

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_SERVER",
    "AlignedSpan",
    "AsyncClient",
    "Client",
    "ClientError",
    "DetectedLanguage",
    "FinishReason",
    "Flag",
    "HttpPort",
    "Hypothesis",
    "MimeType",
    "Model",
    "NoServer",
    "NotSecure",
    "Options",
    "Placeholder",
    "Priority",
    "RequestFields",
    "Segment",
    "SplitSentences",
    "StreamEvent",
    "Target",
    "Term",
    "Tls",
    "TlsAdvice",
    "Translation",
    "__version__",
    "target_of",
]
