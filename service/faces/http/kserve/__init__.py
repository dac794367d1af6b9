"""The Open Inference Protocol over HTTP, as Triton and KServe speak it."""
