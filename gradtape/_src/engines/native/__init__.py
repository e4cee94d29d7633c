"""The native engine: fuses, plans, writes in place, and lowers graphs to programs of the core."""
