"""Placeholder: not written yet."""
