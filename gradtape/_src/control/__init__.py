"""Branches and loops: how they run, how they are traced, what they carry; and assertions, which branch too."""
