"""State dicts of hand-written Transformers that follow the five notebooks listed in docs/notebooks.md."""
