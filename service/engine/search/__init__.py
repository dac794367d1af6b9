"""What the search in C++ has done, as sequences and hypotheses."""
