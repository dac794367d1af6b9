"""Which device runs which precision, according to the kernels that ONNX Runtime has."""

from service.bundle.errors import BundleError

# Other combinations would run, but very slowly. On CUDA, GroupQueryAttention takes float16 and bfloat16 only, and the
# matrix products of int8 graphs have no kernel: ONNX Runtime would run them on the CPU and copy the arenas there and
# back in each step. On the CPU, MultiHeadAttention takes float32 only: a float16 graph would be cast back and forth in
# every layer.
DEVICE_OF_PRECISION = {"float32": "cpu", "int8": "cpu", "float16": "cuda"}


def check_precision(precision: str, device: str, where: str) -> None:
    """Check that a bundle's precision can run on a device; `where` names the bundle.

    Raises:
        BundleError: it can't, or the precision is unknown.
    """
    choices = ", ".join(f"{name} on {runs_on}" for name, runs_on in DEVICE_OF_PRECISION.items())
    if precision not in DEVICE_OF_PRECISION:
        raise BundleError(f"{where} has the unknown precision {precision!r}; this service runs {choices}.")
    if DEVICE_OF_PRECISION[precision] != device:
        wanted = [name for name, runs_on in DEVICE_OF_PRECISION.items() if runs_on == device]
        raise BundleError(
            f"{where} is a {precision} bundle, which device {device!r} can't run (runnable: {choices}); "
            f"give a bundle in {' or '.join(wanted)}, or choose device {DEVICE_OF_PRECISION[precision]!r}."
        )
