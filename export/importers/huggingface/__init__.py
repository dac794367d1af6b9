"""The common parts of checkpoints in the format of transformers: settings, weights, tokenizer files, the reference."""
