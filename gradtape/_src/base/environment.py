"""The environment variables of gradtape, read and checked in one place, before the native core looks at them.

An invalid value is reported once, by the logger "gradtape", and removed from the environment of the process, as are
values that equal the default: the core and child processes see only the settings in effect. Only an instruction set that
does not exist is an error: who asks for one means to measure or to compare, and would not know what ran.
`python -m gradtape info` shows it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping
from typing import NamedTuple

from gradtape._src.base import log


class Setting(NamedTuple):
    """A variable, the check of its values, and its description."""

    name: str
    accepts: Callable[[str], bool]
    expected: str
    default: str
    meaning: str
    ignored: bool = True
    """Whether the default takes the place of an invalid value."""


def _one_of(*words: str) -> Callable[[str], bool]:
    return lambda value: value in words


_SWITCH = _one_of("0", "1")

SETTINGS = (
    Setting(
        "GRADTAPE_NUM_THREADS",
        lambda value: value.isascii() and value.isdigit() and 1 <= int(value[:5]) <= 1024 and len(value) < 5,
        "a number of threads from 1 to 1024",
        "as many as there are processors",
        "How many threads ops use. Results do not depend on it.",
    ),
    Setting(
        "GRADTAPE_COMPILE",
        _one_of("0", "1", "always"),
        "0, 1 or always",
        "1",
        "Whether a tape compiles a backward pass that it has seen before (1), at first sight (always), or not (0).",
    ),
    Setting(
        "GRADTAPE_ISA",
        _one_of("1", "2", "3", "4"),
        "a level of x86-64: 2, 3 or 4",
        "the highest that the processor has",
        "Asks for kernels of an older instruction set; more than the processor has is not used.",
        ignored=False,
    ),
    Setting(
        "GRADTAPE_LINES",
        _SWITCH,
        "0 or 1",
        "0",
        "Remembers the line of the program that recorded an op, for messages: `tf.debug.lines`.",
    ),
    Setting(
        "GRADTAPE_NUMERICS",
        _SWITCH,
        "0 or 1",
        "0",
        "Stops at the first NaN or infinity: `tf.debug.check_numerics.enable()`.",
    ),
    Setting(
        "GRADTAPE_ENGINE",
        _one_of("native", "xla"),
        "native or xla",
        "native",
        'What runs functions: `tf.config.set_engine`. "xla" needs pip install "gradtape[xla]".',
    ),
    Setting(
        "GRADTAPE_AS_TENSORFLOW",
        _SWITCH,
        "0 or 1",
        "0",
        "Makes `import tensorflow` mean gradtape in every Python that is started: `tf.install_as_tensorflow`.",
    ),
    Setting(
        "GRADTAPE_PROGRESS",
        _SWITCH,
        "0 or 1",
        "in terminals and notebooks",
        "Whether long work has a bar, where tqdm is installed: `tf.config.show_progress`.",
    ),
    Setting("GRADTAPE_DEBUG", _SWITCH, "0 or 1", "0", "Prints why a backward pass could not be compiled."),
)


def check(environ: MutableMapping[str, str] = os.environ) -> None:
    """Reports invalid values and removes them.

    Raises:
      ImportError: if the default cannot take the place of one.
    """
    for setting in SETTINGS:
        value = environ.get(setting.name)
        if value is None or (setting.accepts(value) and value != setting.default):
            continue
        if value.strip() and not setting.ignored:
            raise ImportError(
                f"{setting.name}={value[:40]!r} means nothing: expected {setting.expected}. Hint: unset it, and "
                f"gradtape takes {setting.default}.",
                name="gradtape",
            )
        if value.strip() and value != setting.default:
            log.warning(
                "%s=%r means nothing: expected %s; the default is used: %s",
                setting.name, value[:40], setting.expected, setting.default,
            )  # fmt: skip
        del environ[setting.name]


def is_on(name: str, environ: MutableMapping[str, str] = os.environ) -> bool:
    """Whether a switch is on."""
    return environ.get(name) == "1"


check()
