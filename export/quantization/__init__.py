"""int8: weights in 8 bits per output, the graphs of the kernels' operators, and how near they are to the model."""
