"""Importers that turn every supported kind of checkpoint into an `ImportedCheckpoint`."""
