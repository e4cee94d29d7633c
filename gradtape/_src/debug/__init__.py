"""Diagnostics: the searches and pictures behind `tape.explain`, `tape.draw`, `debug.lines` and the like."""
