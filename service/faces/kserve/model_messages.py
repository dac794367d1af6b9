"""What KServe v2 tells of models: tensors, limits, statistics and states."""

from collections.abc import Sequence
from dataclasses import replace

from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.kserve.tensors import BYTES, FP32, INPUTS, OUTPUTS, TEXT
from service.models.loaded_model import Duration, LoadedModel

PLATFORM = "dragoman"

_DATA_TYPES = {BYTES: pb.TYPE_STRING, FP32: pb.TYPE_FP32}


def metadata_to_pb(model: LoadedModel, versions: Sequence[str]) -> pb.ModelMetadataResponse:
    """Return a model's tensors and its served `versions`."""
    tensor = pb.ModelMetadataResponse.TensorMetadata
    return pb.ModelMetadataResponse(
        name=model.name,
        versions=[version for version in versions if version],
        platform=PLATFORM,
        inputs=[tensor(name=name, datatype=datatype, shape=[-1]) for name, datatype in INPUTS.items()],
        outputs=[tensor(name=name, datatype=datatype, shape=[-1]) for name, datatype in OUTPUTS.items()],
    )


def config_to_pb(model: LoadedModel) -> pb.ModelConfigResponse:
    """Return a model's tensors, limits and language pairs."""
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

    As Triton does, phases have the count of successful calls: perf_analyzer fails where their counts differ, as they
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
