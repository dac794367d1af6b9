"""How texts in the languages of India are written for IndicTrans2's models, and their outputs for people."""
