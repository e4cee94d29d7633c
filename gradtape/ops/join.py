"""Putting tensors together and taking them apart: concat, stack, split, unstack, add_n."""
