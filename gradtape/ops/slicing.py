"""Indexing and slicing, and their transposes."""
