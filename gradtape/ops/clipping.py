"""Clipping values and norms."""
