"""Random numbers: the counter-based native draws and their public forms."""
