"""Calls to compare, by family: each file has a text `CALLS`, and a line of it is a call (see `written.py`)."""
