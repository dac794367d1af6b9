"""The methods of KServe v2 and Triton, independent of the transport."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import service
from service.domain.call import current_call
from service.domain.errors import Forbidden, InvalidRequest, NotFound, Path, Unavailable, Unimplemented
from service.domain.translation import TranslationResult
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.kserve.messages import InferCall, call_from_pb, results_to_pb, spelled
from service.faces.kserve.tensors import BYTES, FP32, INPUTS, OUTPUTS, TEXT
from service.models.control import ModelControl
from service.models.index import LoadState
from service.models.loaded_model import Duration, LoadedModel
from service.process.event_loop import all_of
from service.process.lifecycle import Phase
from service.translation.source_languages import Part
from service.translation.translator import Translator

# Triton's names for the supported features: parameters are decoding options, the policy is priority and timeout.
_EXTENSIONS = ("model_configuration", "model_repository", "parameters", "schedule_policy", "statistics")

# Calls of Triton's that are not supported, with what is told and what to do instead.
_REFUSED = {
    "shared_memory": ("shared memory is not supported", "send and receive tensors in the messages"),
    "trace_setting": ("tracing can't be configured by call", "start the server with --otlp-endpoint"),
    "log_settings": ("log settings can't be read or changed by call", "start the server with --log-level"),
    "generate": (
        "Triton's generate extension is not supported",
        "send the text as a tensor to infer, or to /v1/translate/stream",
    ),
}

PLATFORM = "dragoman"

_DATA_TYPES = {BYTES: pb.TYPE_STRING, FP32: pb.TYPE_FP32}


class KServeMethods:
    """The supported methods, for the event loop's thread; they raise only ServiceError.

    An empty `version` means the highest one. There is one repository, whose name is empty.
    """

    def __init__(self, translator: Translator, control: ModelControl, phase: Callable[[], Phase]) -> None:
        self._translator = translator
        self._control = control
        self._phase = phase

    def server_live(self) -> bool:
        return self._phase().is_alive

    def server_ready(self) -> bool:
        return self._phase().is_ready

    def model_ready(self, name: str, version: str) -> bool:
        try:
            self._translator.model(name, version)
        except (Forbidden, NotFound, Unavailable):
            return False
        return self._phase().is_ready

    def server_metadata(self, *more_extensions: str) -> pb.ServerMetadataResponse:
        extensions = sorted((*_EXTENSIONS, *more_extensions))
        return pb.ServerMetadataResponse(name="dragoman", version=service.__version__, extensions=extensions)

    def model_metadata(self, name: str, version: str) -> pb.ModelMetadataResponse:
        model = self._translator.model(name, version)
        return metadata_to_pb(model, [each.version for each in reversed(self._versions(model.name))])

    def model_config(self, name: str, version: str) -> pb.ModelConfigResponse:
        return config_to_pb(self._translator.model(name, version))

    def model_statistics(self, name: str, version: str) -> pb.ModelStatisticsResponse:
        """Return statistics of one model, or of all models if `name` is empty; of all versions without `version`."""
        models = self._translator.models()
        if name:
            found = self._translator.model(name, version)
            models = [found] if version else self._versions(name)
        return pb.ModelStatisticsResponse(model_stats=[statistics_to_pb(model) for model in models])

    async def infer(self, request: pb.ModelInferRequest, deadline_seconds: float) -> pb.ModelInferResponse:
        """Translate; `deadline_seconds` is on the clock of `time.monotonic()`."""
        if not request.model_name:
            raise InvalidRequest(
                "{path} is empty", Path("model_name"), advice="name one of the models that RepositoryIndex lists"
            )
        model = self._translator.model(request.model_name, request.model_version)
        call = call_from_pb(request, model, time.monotonic(), deadline_seconds)
        texts = [text for part in call.parts for text in part.request.texts]
        current_call().asks_for(texts)
        self._translator.check_texts(texts)
        return results_to_pb(call, await self._translate(call), request.id)

    async def repository_index(self, repository: str, *, only_ready: bool) -> pb.RepositoryIndexResponse:
        _check_repository(repository)
        grants = current_call().grants
        states = [each for each in await self._control.states() if grants.allows_model(each.name)]
        listed = [each for each in states if each.state is LoadState.READY or not only_ready]
        entry = pb.RepositoryIndexResponse.ModelIndex
        return pb.RepositoryIndexResponse(
            models=[entry(name=s.name, version=s.version, state=s.state.name, reason=s.reason) for s in listed]
        )

    async def load(self, repository: str, name: str, parameters: Iterable[str]) -> None:
        """Load a model; `parameters` are the names of those that the caller gave, and none is supported."""
        _check_repository(repository)
        for parameter in parameters:
            raise Unimplemented(
                "parameter {name} is not supported", name=parameter, advice="models are loaded as they are on disk"
            )
        current_call().grants.check_model(name)
        self._translator.check_loaded()
        await self._control.load(name)

    async def unload(self, repository: str, name: str) -> None:
        _check_repository(repository)
        current_call().grants.check_model(name)
        self._translator.check_loaded()
        await self._control.unload(name)

    def _versions(self, name: str) -> list[LoadedModel]:
        return [model for model in self._translator.models() if model.name == name]

    async def _translate(self, call: InferCall) -> list[TranslationResult]:
        if len(call.parts) == 1:
            return [await self._translate_part(call.parts[0])]
        return await all_of(map(self._translate_part, call.parts))

    async def _translate_part(self, part: Part) -> TranslationResult:
        try:
            return await self._translator.translate(part.request)
        except InvalidRequest as error:
            part.name_in_whole(error)
            error.spelling = spelled
            raise


def refusal(call: str) -> Unimplemented:
    problem, advice = _REFUSED[call]
    return Unimplemented(problem, advice=advice)


def _check_repository(name: str) -> None:
    if name:
        advice = "there is only one repository; leave the name empty"
        raise Unimplemented("{path} is {name}", Path("repository_name"), name=name, advice=advice)


def metadata_to_pb(model: LoadedModel, versions: Sequence[str]) -> pb.ModelMetadataResponse:
    tensor = pb.ModelMetadataResponse.TensorMetadata
    return pb.ModelMetadataResponse(
        name=model.name,
        versions=[version for version in versions if version],
        platform=PLATFORM,
        inputs=[tensor(name=name, datatype=datatype, shape=[-1]) for name, datatype in INPUTS.items()],
        outputs=[tensor(name=name, datatype=datatype, shape=[-1]) for name, datatype in OUTPUTS.items()],
    )


def config_to_pb(model: LoadedModel) -> pb.ModelConfigResponse:
    manifest = model.manifest
    parameters = {
        "precision": manifest.precision,
        "max_source_tokens": str(manifest.limits.max_source_tokens),
        "max_output_tokens": str(manifest.limits.max_output_tokens),
        "language_pairs": " ".join(f"{source}:{target}" for source, target in model.pairs.listed),
        "any_to_any_languages": " ".join(model.pairs.any_to_any),
    }
    config = pb.ModelConfig(
        name=model.name,
        platform=PLATFORM,
        backend=PLATFORM,
        max_batch_size=0,
        input=[
            pb.ModelInput(name=name, data_type=_DATA_TYPES[datatype], dims=[-1], optional=name != TEXT)
            for name, datatype in INPUTS.items()
        ],
        output=[
            pb.ModelOutput(name=name, data_type=_DATA_TYPES[datatype], dims=[-1]) for name, datatype in OUTPUTS.items()
        ],
        parameters={key: pb.ModelParameter(string_value=value) for key, value in parameters.items() if value},
        model_transaction_policy=pb.ModelTransactionPolicy(decoupled=False),
    )
    return pb.ModelConfigResponse(config=config)


def statistics_to_pb(model: LoadedModel) -> pb.ModelStatistics:
    """Return a model's statistics since it was loaded.

    As in Triton, phases have the count of successful calls: perf_analyzer fails where their counts differ, as they
    would while calls are between two phases.
    """
    statistics = model.statistics
    steps = statistics.step_seconds()
    count = statistics.succeeded.count
    return pb.ModelStatistics(
        name=model.name,
        version=model.version,
        last_inference=round(statistics.last_used_seconds * 1000),
        inference_count=statistics.num_texts,
        execution_count=sum(step.count for step in steps.values()),
        inference_stats=pb.InferStatistics(
            success=_duration_to_pb(statistics.succeeded),
            fail=_duration_to_pb(statistics.failed),
            queue=_duration_to_pb(replace(statistics.queue, count=count)),
            compute_input=_duration_to_pb(replace(statistics.tokenize, count=count)),
            compute_infer=_duration_to_pb(replace(statistics.decode, count=count)),
            compute_output=_duration_to_pb(replace(statistics.detokenize, count=count)),
        ),
        batch_stats=[
            pb.InferBatchStatistics(batch_size=rows, compute_infer=_duration_to_pb(step))
            for rows, step in steps.items()
        ],
    )


def _duration_to_pb(duration: Duration) -> pb.StatisticDuration:
    return pb.StatisticDuration(count=duration.count, ns=round(duration.seconds * 10**9))
