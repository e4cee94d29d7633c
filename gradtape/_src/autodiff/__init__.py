"""Derivatives of functions: forward mode, products with Jacobians, sparse Jacobians, implicit gradients."""
