"""Branches and loops in graphs: how they are traced, what they carry, how they run; and printing and assertions."""
