"""M2M100 and NLLB-200 in the format of transformers."""
