"""Lowerings of rows that take more than one function of JAX, in files named as those of `gradtape/_src/ops`."""
