"""Gather, scatter, one_hot, masks and segments."""
