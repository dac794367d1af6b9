"""From texts to translations: planning, decoding, restoring, assembling, streaming."""
