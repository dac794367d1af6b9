"""Marian (OPUS-MT) in the format of transformers."""
