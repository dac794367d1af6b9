"""KServe's Open Inference Protocol in Triton's dialect."""
