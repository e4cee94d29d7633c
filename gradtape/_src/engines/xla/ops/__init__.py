"""Lowerings of rows that need more than one JAX function, in files with the names of those in
`gradtape/_src/ops`."""
