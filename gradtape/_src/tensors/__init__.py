"""The Python half of Tensor: conversions, sparse gradients, printing, random numbers, and the hooks of the core."""
