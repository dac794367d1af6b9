"""`inference.GRPCInferenceService` of KServe v2 and Triton, on top of the translator."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Protocol

import grpc

import service
from service.calls.byte_budget import ByteBudget
from service.calls.pipeline import CallPipeline
from service.domain.call import TIMING_KEY, current_call, server_timing
from service.domain.errors import InvalidRequest, NotFound, Path, Unavailable, Unimplemented
from service.domain.translation import TranslationResult
from service.faces.grpc.absent_callers import write
from service.faces.grpc.context import deadline_of
from service.faces.grpc.kserve.infer_stream import InferStream
from service.faces.grpc.kserve.messages import InferCall, call_from_pb, results_to_pb, spelled
from service.faces.grpc.kserve.model_messages import config_to_pb, metadata_to_pb, state_to_pb, statistics_to_pb
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as pb_grpc
from service.models.index import LoadState, ModelState
from service.models.loaded_model import LoadedModel
from service.process.lifecycle import Phase
from service.translation.source_languages import Part
from service.translation.translator import Translator

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["GRPCInferenceService"].full_name

# Triton's names for the supported features: parameters are decoding options, the policy is priority and timeout.
_EXTENSIONS = ("model_configuration", "model_repository", "parameters", "schedule_policy", "statistics")

Context = grpc.aio.ServicerContext[Any, Any]


class Control(Protocol):
    """Loads and unloads models at callers' request; see `ModelControl`."""

    async def load(self, name: str) -> None:
        """Load a model."""
        ...

    async def unload(self, name: str) -> None:
        """Unload a model."""
        ...

    async def states(self) -> list[ModelState]:
        """Return the state of each version."""
        ...


class KServeServicer(pb_grpc.GRPCInferenceServiceServicer):
    """The API for clients of KServe and Triton."""

    def __init__(
        self,
        translator: Translator,
        control: Control,
        pipeline: CallPipeline,
        phase: Callable[[], Phase],
        closing: asyncio.Event,
        default_deadline_seconds: float,
        budget: ByteBudget,
    ) -> None:
        """End streams once `closing` is set. Requests without a deadline get `default_deadline_seconds`; those held on
        streams count towards `budget`."""
        self._translator = translator
        self._control = control
        self._pipeline = pipeline
        self._phase = phase
        self._closing = closing
        self._default_deadline_seconds = default_deadline_seconds
        self._budget = budget

    async def ServerLive(self, request: pb.ServerLiveRequest, context: Context) -> pb.ServerLiveResponse:  # noqa: N802
        """Report whether the server is alive."""
        return pb.ServerLiveResponse(live=self._phase().is_alive)

    async def ServerReady(self, request: pb.ServerReadyRequest, context: Context) -> pb.ServerReadyResponse:  # noqa: N802
        """Report whether the server accepts calls."""
        return pb.ServerReadyResponse(ready=self._phase().is_ready)

    async def ModelReady(self, request: pb.ModelReadyRequest, context: Context) -> pb.ModelReadyResponse:  # noqa: N802
        """Report whether a model is served."""
        try:
            self._translator.model(request.name, request.version)
        except (NotFound, Unavailable):
            return pb.ModelReadyResponse(ready=False)
        return pb.ModelReadyResponse(ready=self._phase().is_ready)

    async def ServerMetadata(  # noqa: N802
        self, request: pb.ServerMetadataRequest, context: Context
    ) -> pb.ServerMetadataResponse:
        """Return the server's name, version and extensions."""
        return pb.ServerMetadataResponse(name="dragoman", version=service.__version__, extensions=_EXTENSIONS)

    async def ModelMetadata(  # noqa: N802
        self, request: pb.ModelMetadataRequest, context: Context
    ) -> pb.ModelMetadataResponse:
        """Return a model's versions and tensors."""
        model = self._translator.model(request.name, request.version)
        return metadata_to_pb(model, [each.version for each in reversed(self._versions(model.name))])

    async def ModelConfig(self, request: pb.ModelConfigRequest, context: Context) -> pb.ModelConfigResponse:  # noqa: N802
        """Return a model's tensors, limits and language pairs."""
        return config_to_pb(self._translator.model(request.name, request.version))

    async def ModelStatistics(  # noqa: N802
        self, request: pb.ModelStatisticsRequest, context: Context
    ) -> pb.ModelStatisticsResponse:
        """Return statistics of one model or of all models."""
        models = self._translator.models()
        if request.name:
            found = self._translator.model(request.name, request.version)
            models = [found] if request.version else self._versions(request.name)
        return pb.ModelStatisticsResponse(model_stats=[statistics_to_pb(model) for model in models])

    async def ModelInfer(self, request: pb.ModelInferRequest, context: Context) -> pb.ModelInferResponse:  # noqa: N802
        """Translate."""
        return await self._infer(request, context)

    async def ModelStreamInfer(self, requests: AsyncIterator[pb.ModelInferRequest], context: Context) -> None:  # noqa: N802
        """Translate a stream of requests."""

        def infer(request: pb.ModelInferRequest) -> Any:
            return self._infer(request, context)

        metadata = tuple(context.invocation_metadata() or ())
        stream = InferStream(infer, self._pipeline, self._budget.hold(), metadata)
        began_seconds = time.monotonic()
        try:
            await stream.run(requests, partial(write, context), self._closing)
        finally:
            timing = server_timing(stream.seconds.__getitem__, time.monotonic() - began_seconds)
            context.set_trailing_metadata((*(context.trailing_metadata() or ()), (TIMING_KEY, timing)))

    async def RepositoryIndex(  # noqa: N802
        self, request: pb.RepositoryIndexRequest, context: Context
    ) -> pb.RepositoryIndexResponse:
        """List the models on disk and in memory."""
        _check_repository(request.repository_name)
        states = await self._control.states()
        return pb.RepositoryIndexResponse(
            models=[state_to_pb(each) for each in states if each.state is LoadState.READY or not request.ready]
        )

    async def RepositoryModelLoad(  # noqa: N802
        self, request: pb.RepositoryModelLoadRequest, context: Context
    ) -> pb.RepositoryModelLoadResponse:
        """Load a model."""
        _check_repository(request.repository_name)
        if request.parameters:
            name = next(iter(request.parameters))
            raise Unimplemented(
                "parameter {name} is not supported", name=name, advice="models are loaded as they are on disk"
            )
        self._translator.models()  # raises while the first models are being loaded
        await self._control.load(request.model_name)
        return pb.RepositoryModelLoadResponse()

    async def RepositoryModelUnload(  # noqa: N802
        self, request: pb.RepositoryModelUnloadRequest, context: Context
    ) -> pb.RepositoryModelUnloadResponse:
        """Unload a model."""
        _check_repository(request.repository_name)
        self._translator.models()
        await self._control.unload(request.model_name)
        return pb.RepositoryModelUnloadResponse()

    async def _no_shared_memory(self, request: Any, context: Context) -> Any:
        raise Unimplemented("shared memory is not supported", advice="send and receive tensors in the messages")

    async def TraceSetting(self, request: pb.TraceSettingRequest, context: Context) -> pb.TraceSettingResponse:  # noqa: N802
        """Reject the call: there are no trace settings."""
        raise Unimplemented("tracing can't be configured by call", advice="start the server with --otlp-endpoint")

    async def LogSettings(self, request: pb.LogSettingsRequest, context: Context) -> pb.LogSettingsResponse:  # noqa: N802
        """Reject the call: there are no log settings."""
        raise Unimplemented("log settings can't be read or changed by call", advice="start the server with --log-level")

    SystemSharedMemoryStatus = SystemSharedMemoryRegister = SystemSharedMemoryUnregister = _no_shared_memory
    CudaSharedMemoryStatus = CudaSharedMemoryRegister = CudaSharedMemoryUnregister = _no_shared_memory

    def _versions(self, name: str) -> list[LoadedModel]:
        """Return the served versions of a model, highest first."""
        return [model for model in self._translator.models() if model.name == name]

    async def _infer(self, message: pb.ModelInferRequest, context: Context) -> pb.ModelInferResponse:
        if not message.model_name:
            raise InvalidRequest(
                "{path} is empty", Path("model_name"), advice="name one of the models that RepositoryIndex lists"
            )
        model = self._translator.model(message.model_name, message.model_version)
        deadline = deadline_of(context, self._default_deadline_seconds)
        call = call_from_pb(message, model, time.monotonic(), deadline)
        texts = [text for part in call.parts for text in part.request.texts]
        current_call().asks_for(texts)
        self._translator.check_texts(texts)
        return results_to_pb(call, await self._translate(call), message.id)

    async def _translate(self, call: InferCall) -> list[TranslationResult]:
        """Return one result for each part of the call, or raise the error of one of them."""
        if len(call.parts) == 1:
            return [await self._translate_part(call.parts[0])]
        try:
            async with asyncio.TaskGroup() as tasks:
                results = [tasks.create_task(self._translate_part(part)) for part in call.parts]
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        return [result.result() for result in results]

    async def _translate_part(self, part: Part) -> TranslationResult:
        try:
            return await self._translator.translate(part.request)
        except InvalidRequest as error:
            part.name_in_whole(error)
            error.spelling = spelled
            raise


def _check_repository(name: str) -> None:
    if name:
        advice = "there is only one repository; leave the name empty"
        raise Unimplemented("{path} is {name}", Path("repository_name"), name=name, advice=advice)
