"""What all checkpoints in the format of transformers share: settings, weights, tokenizer files, the reference."""
