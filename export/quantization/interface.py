"""Dtypes and shapes of a fused graph's inputs and outputs, whose meaning is in `service.bundle.fused_io`."""

from collections.abc import Mapping, Sequence

import onnx

from service.bundle import fused_io
from service.bundle.manifest_parts import ModelShape

INT32, INT64 = onnx.TensorProto.INT32, onnx.TensorProto.INT64
FLOAT, UINT8, UINT16 = onnx.TensorProto.FLOAT, onnx.TensorProto.UINT8, onnx.TensorProto.UINT16
OUTPUTS: Mapping[str, tuple[str, ...]] = {
    fused_io.ENCODE: fused_io.ENCODE_OUTPUTS,
    fused_io.DECODE: fused_io.DECODE_OUTPUTS,
}


def declared(operator: str, shape: ModelShape) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    """Return the inputs of a fused graph, and its outputs; heads are of the model's own size, not padded."""
    if operator not in OUTPUTS:
        raise ValueError(f"The operator is {operator}, expected one of {', '.join(OUTPUTS)}.")
    layers = shape.num_decoder_layers
    padded = -(-shape.head_size // fused_io.BLOCK_TOKENS) * fused_io.BLOCK_TOKENS
    block = (shape.num_heads, 2, fused_io.BLOCK_TOKENS * padded)
    of_layer = fused_io.state(shape.state_size) if shape.is_recurrent else ("A", *block)
    kinds: Mapping[str, tuple[int, Sequence[str | int]]] = {
        "token_ids": (INT64, ("T",)),
        "ends": (INT32, ("B",)),
        "slots": (INT32, ("B",)),
        "num_threads": (INT32, (1,)),
        "is_finite": (INT32, ("B",)),
        "most_repeats": (INT32, ("B",)),
        "control": (INT32, (fused_io.CONTROL.itemsize // 4,)),
        "rows": (UINT8, ("N", fused_io.ROW.itemsize)),
        "output_ids": (INT64, ("N", "C")),
        "history": (INT32, ("H", "C")),
        "hypotheses": (UINT8, ("M", fused_io.HYPOTHESIS.itemsize)),
        "hypothesis_ids": (INT64, ("M", "C")),
        "self_cache": (UINT16, ("N", layers, *of_layer)),
        "cross_cache": (UINT16, ("N", layers, "S", *block)),
        "attention": (FLOAT, ("R", "P", "W")),
        "num_steps": (INT32, (1,)),
        fused_io.SHORTLISTS: (INT32, ("N", shape.shortlist_size + 1)),
    }
    inputs, outputs = (
        [onnx.helper.make_tensor_value_info(name, *kinds[name]) for name in names]
        for names in (fused_io.inputs_of(operator, shape), OUTPUTS[operator])
    )
    return inputs, outputs
