"""Any PyTorch encoder-decoder: read by running it, whatever its parts are called."""
