"""Dtypes and shapes of a fused graph's inputs and outputs, whose meaning is in `service.bundle.fused_io`."""

from collections.abc import Mapping, Sequence

import onnx

from service.bundle import fused_io

INT32, INT64 = onnx.TensorProto.INT32, onnx.TensorProto.INT64
FLOAT, UINT8, UINT16 = onnx.TensorProto.FLOAT, onnx.TensorProto.UINT8, onnx.TensorProto.UINT16


def declared(
    operator: str, num_decoder_layers: int, num_heads: int, head_size: int, state_size: int = 0
) -> list[onnx.ValueInfoProto]:
    """Return all inputs of a fused graph, then its outputs; `head_size` is the model's own, not padded."""
    if operator not in NAMES:
        raise ValueError(f"The operator is {operator}, expected one of {', '.join(NAMES)}.")
    padded = -(-head_size // fused_io.BLOCK_TOKENS) * fused_io.BLOCK_TOKENS
    block = (num_heads, 2, fused_io.BLOCK_TOKENS * padded)
    of_layer = fused_io.state(state_size) if state_size else ("A", *block)
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
        "self_cache": (UINT16, ("N", num_decoder_layers, *of_layer)),
        "cross_cache": (UINT16, ("N", num_decoder_layers, "S", *block)),
        "attention": (FLOAT, ("R", "P", "W")),
        "num_steps": (INT32, (1,)),
    }
    inputs, outputs = NAMES[operator]
    return [onnx.helper.make_tensor_value_info(name, *kinds[name]) for name in (*inputs, *outputs)]


NAMES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    fused_io.ENCODE: (fused_io.ENCODE_INPUTS, fused_io.ENCODE_OUTPUTS),
    fused_io.DECODE: (fused_io.DECODE_INPUTS, fused_io.DECODE_OUTPUTS),
}
