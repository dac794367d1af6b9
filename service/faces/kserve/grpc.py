"""`inference.GRPCInferenceService` of KServe v2 and Triton: the methods (`methods.py`) over gRPC."""

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import grpc

from service.calls.open_calls import ByteBudget
from service.calls.pipeline import CallPipeline
from service.domain.call import TIMING_KEY, CallKind, current_call, server_timing
from service.faces.grpc.absent_callers import write
from service.faces.grpc.api import GrpcApi
from service.faces.grpc.calls import deadline_of
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as pb_grpc
from service.faces.kserve.infer_stream import InferStream
from service.faces.kserve.methods import KServeMethods, refusal

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["GRPCInferenceService"].full_name

Context = grpc.aio.ServicerContext[Any, Any]


class KServeServicer(pb_grpc.GRPCInferenceServiceServicer):
    """The API for clients of KServe and Triton."""

    def __init__(
        self,
        methods: KServeMethods,
        pipeline: CallPipeline,
        closing: asyncio.Event,
        default_deadline_seconds: float,
        budget: ByteBudget,
    ) -> None:
        """End streams once `closing` is set; requests held on streams count towards `budget`."""
        self._methods = methods
        self._pipeline = pipeline
        self._closing = closing
        self._default_deadline_seconds = default_deadline_seconds
        self._budget = budget

    async def ServerLive(self, request: pb.ServerLiveRequest, context: Context) -> pb.ServerLiveResponse:  # noqa: N802
        return pb.ServerLiveResponse(live=self._methods.server_live())

    async def ServerReady(self, request: pb.ServerReadyRequest, context: Context) -> pb.ServerReadyResponse:  # noqa: N802
        return pb.ServerReadyResponse(ready=self._methods.server_ready())

    async def ModelReady(self, request: pb.ModelReadyRequest, context: Context) -> pb.ModelReadyResponse:  # noqa: N802
        return pb.ModelReadyResponse(ready=self._methods.model_ready(request.name, request.version))

    async def ServerMetadata(  # noqa: N802
        self, request: pb.ServerMetadataRequest, context: Context
    ) -> pb.ServerMetadataResponse:
        return self._methods.server_metadata()

    async def ModelMetadata(  # noqa: N802
        self, request: pb.ModelMetadataRequest, context: Context
    ) -> pb.ModelMetadataResponse:
        return self._methods.model_metadata(request.name, request.version)

    async def ModelConfig(self, request: pb.ModelConfigRequest, context: Context) -> pb.ModelConfigResponse:  # noqa: N802
        return self._methods.model_config(request.name, request.version)

    async def ModelStatistics(  # noqa: N802
        self, request: pb.ModelStatisticsRequest, context: Context
    ) -> pb.ModelStatisticsResponse:
        return self._methods.model_statistics(request.name, request.version)

    async def ModelInfer(self, request: pb.ModelInferRequest, context: Context) -> pb.ModelInferResponse:  # noqa: N802
        return await self._infer(request, context)

    async def ModelStreamInfer(self, requests: AsyncIterator[pb.ModelInferRequest], context: Context) -> None:  # noqa: N802
        def infer(request: pb.ModelInferRequest) -> Any:
            return self._infer(request, context)

        metadata = tuple(context.invocation_metadata() or ())
        stream = InferStream(infer, self._pipeline, self._budget.hold(self._pipeline.owner(current_call())), metadata)
        began_seconds = time.monotonic()
        try:
            await stream.run(requests, partial(write, context), self._closing)
        finally:
            timing = server_timing(stream.seconds.__getitem__, time.monotonic() - began_seconds)
            context.set_trailing_metadata((*(context.trailing_metadata() or ()), (TIMING_KEY, timing)))

    async def RepositoryIndex(  # noqa: N802
        self, request: pb.RepositoryIndexRequest, context: Context
    ) -> pb.RepositoryIndexResponse:
        return await self._methods.repository_index(request.repository_name, only_ready=request.ready)

    async def RepositoryModelLoad(  # noqa: N802
        self, request: pb.RepositoryModelLoadRequest, context: Context
    ) -> pb.RepositoryModelLoadResponse:
        await self._methods.load(request.repository_name, request.model_name, request.parameters)
        return pb.RepositoryModelLoadResponse()

    async def RepositoryModelUnload(  # noqa: N802
        self, request: pb.RepositoryModelUnloadRequest, context: Context
    ) -> pb.RepositoryModelUnloadResponse:
        await self._methods.unload(request.repository_name, request.model_name)
        return pb.RepositoryModelUnloadResponse()

    async def _no_shared_memory(self, request: Any, context: Context) -> Any:
        raise refusal("shared_memory")

    async def TraceSetting(self, request: pb.TraceSettingRequest, context: Context) -> pb.TraceSettingResponse:  # noqa: N802
        raise refusal("trace_setting")

    async def LogSettings(self, request: pb.LogSettingsRequest, context: Context) -> pb.LogSettingsResponse:  # noqa: N802
        raise refusal("log_settings")

    SystemSharedMemoryStatus = SystemSharedMemoryRegister = SystemSharedMemoryUnregister = _no_shared_memory
    CudaSharedMemoryStatus = CudaSharedMemoryRegister = CudaSharedMemoryUnregister = _no_shared_memory

    async def _infer(self, request: pb.ModelInferRequest, context: Context) -> pb.ModelInferResponse:
        return await self._methods.infer(request, deadline_of(context, self._default_deadline_seconds))


def kserve_api(
    methods: KServeMethods,
    pipeline: CallPipeline,
    closing: asyncio.Event,
    default_deadline_seconds: float,
    budget: ByteBudget,
) -> GrpcApi:
    servicer = KServeServicer(methods, pipeline, closing, default_deadline_seconds, budget)
    return GrpcApi(
        SERVICE_NAME,
        lambda server: pb_grpc.add_GRPCInferenceServiceServicer_to_server(servicer, server),
        kinds=dict.fromkeys(("ModelInfer", "ModelStreamInfer"), CallKind.TRANSLATE),
        keyless=("ServerLive", "ServerReady"),
        listing=("ServerMetadata", "ModelReady", "ModelMetadata", "RepositoryIndex"),
    )
