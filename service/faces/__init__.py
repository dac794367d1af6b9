"""What callers speak: each face maps its messages to the domain and back, and nothing else."""
