"""GradientTape, and what users say about gradients: their own rules, primitives, assignments that count."""
