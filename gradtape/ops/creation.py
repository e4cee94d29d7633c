"""Tensors from nothing: constants, zeros, ranges."""
