"""The contract between export and service: a bundle's files and its graphs' interfaces. Standard library only."""
