"""Sorting, top_k, searchsorted."""
