"""GradientTape, and gradients that users define: custom rules, primitives, tracked assignments."""
