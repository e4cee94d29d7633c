"""Ops that move elements: reshape, transpose, broadcast, pad, tile, and identity."""
