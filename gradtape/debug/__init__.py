"""gradtape.debug: say why. Which op broke the way to a source, at which line, and what to do."""

from gradtape.debug.explain import Explanation, explain
from gradtape.debug.lines import lines

__all__ = ["Explanation", "explain", "lines"]
