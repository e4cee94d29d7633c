"""What lasts from step to step: variables, modules that hold them, and their first values."""
