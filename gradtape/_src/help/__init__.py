"""Help pages: one Markdown file per frequent question, in this folder; `python -m gradtape help`.

Messages refer to a page by its topic (`errors.more`). The same files are part of the site, and the tests run their code.
"""

from __future__ import annotations

import difflib
from pathlib import Path

_FOLDER = Path(__file__).parent

# The most frequent questions first. A topic is the name of its file.
TOPICS = (
    "none-gradients",
    "nan-gradients",
    "input-gradients",
    "several-gradients",
    "vector-targets",
    "hessians",
    "gradient-accumulation",
    "assigning",
    "integers",
    "types-and-shapes",
    "complex-losses",
    "custom-gradients",
    "memory",
    "speed",
    "retracing",
    "traced-values",
    "variables-in-functions",
    "random-seeds",
    "threads",
    "checkpoints",
    "scipy",
)


def page(topic: str) -> str:
    """The page for a topic, as Markdown."""
    return (_FOLDER / f"{topic}.md").read_text(encoding="utf-8")


def title(topic: str) -> str:
    """The question that a page answers: its first line."""
    return page(topic).partition("\n")[0].removeprefix("# ")


def contents() -> str:
    """The topics with their questions, a line each.

    >>> print(contents().splitlines()[0])
    none-gradients          Why is my gradient None?
    """
    width = max(map(len, TOPICS)) + 2
    return "\n".join(f"{topic:<{width}}{title(topic)}" for topic in TOPICS)


def near(words: str) -> list[str]:
    """The topics that are probably meant: all words match, similar spelling, or the words are in the page; best first.

    >>> near("none")
    ['none-gradients']
    >>> near("NaN gradient")
    ['nan-gradients']
    >>> near("hesians")
    ['hessians']
    >>> near("l-bfgs")
    ['scipy']
    """
    asked = words.lower().removesuffix(".md").replace("_", " ").replace("-", " ").split()
    topic = "-".join(asked)
    if topic in TOPICS:
        return [topic]
    stems = {word.rstrip("s") for word in asked}
    named = [t for t in TOPICS if stems <= {part.rstrip("s") for part in t.split("-")}]
    said = {t: page(t).lower().count(words.lower()) for t in TOPICS}
    by_count = sorted((t for t in TOPICS if said[t]), key=lambda t: -said[t])
    return named or difflib.get_close_matches(topic, TOPICS, 3, 0.75) or by_count[:5]
