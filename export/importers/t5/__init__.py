"""T5 in the format of transformers: also T5 v1.1, Flan, MADLAD-400, mT5 and UMT5."""
