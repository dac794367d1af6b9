"""mBART, mBART-50, BART and PLBart in the format of transformers."""
