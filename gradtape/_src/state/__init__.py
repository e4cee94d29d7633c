"""State that lasts from step to step: variables, modules that hold them, and initializers."""
