"""`python -m gradtape run`: runs an unmodified program with gradtape as its TensorFlow."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from types import ModuleType, TracebackType

from gradtape_imports import tensorflow_finder as finder


def run(program: list[str]) -> int:
    """Runs `script.py [args]` or `-m module [args]` as Python would, under the alias; the status of the process.

    Processes that the program starts have the alias, too.
    """
    if not program or program == ["-m"]:
        print("run: expected a script, or -m and a module: run train.py --epochs 3", file=sys.stderr)
        return 2
    finder.install()
    os.environ["GRADTAPE_AS_TENSORFLOW"] = "1"
    if program[0] == "-m":
        return _finished(_run_module, program[1:])
    return _finished(_run_script, program)


def _run_module(arguments: list[str]) -> None:
    sys.argv = list(arguments)
    sys.path[0] = os.getcwd()
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


def _run_script(arguments: list[str]) -> None:
    path = arguments[0]
    with open(path, "rb") as file:
        source = file.read()
    code = compile(source, path, "exec")
    main = ModuleType("__main__")
    main.__file__ = path
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    sys.argv = list(arguments)
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    exec(code, vars(main))


def _finished(function, arguments: list[str]) -> int:  # type: ignore[no-untyped-def]
    """Runs it, and shows an exception without the lines of this file."""
    try:
        function(arguments)
    except FileNotFoundError as e:
        if e.filename != arguments[0]:
            return _shown(e)
        print(f"run: there is no file {arguments[0]}", file=sys.stderr)
        return 2
    except SystemExit:
        raise
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        return _shown(e)
    return 0


def _shown(error: BaseException) -> int:
    trace: TracebackType | None = error.__traceback__
    own = (__file__, runpy.__file__, "<frozen runpy>")
    while trace is not None and trace.tb_frame.f_code.co_filename in own:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)
    return 1
