"""Conversion of texts in the languages of India to the form of IndicTrans2's models, and of their outputs back."""
