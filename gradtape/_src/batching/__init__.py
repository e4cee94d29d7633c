"""One more axis: batched graphs, vectorized_map, Jacobians, and analysis of backward passes (linear? sparse?)."""
