"""KServe's Open Inference Protocol, as Triton speaks it."""
