"""IndicTrans2 in the format of transformers, without its own code."""
