"""Products that sum over axes: matmul, einsum, tensordot."""
