"""Static int8: weights in 8 bits per output channel, activations in 8 bits with scales calibrated beforehand."""
