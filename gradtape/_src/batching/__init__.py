"""One more axis: batched graphs, vectorized_map, Jacobians, and what a pass is known to be (linear, sparse)."""
