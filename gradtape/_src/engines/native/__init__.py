"""The native engine: fuse, plan, write in place, and lower to a program of the core."""
