"""The contract between export and service: what a bundle holds and how its graphs are called. Standard library only."""
