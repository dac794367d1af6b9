"""Imports what Marian itself writes: students of Mozilla's and Bergamot's, OPUS-MT's and HPLT's models, teachers."""
