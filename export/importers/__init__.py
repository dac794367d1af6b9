"""Checkpoints of every supported kind in, `ImportedCheckpoint` out."""
