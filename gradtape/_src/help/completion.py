"""Completion of `python -m gradtape` in bash, zsh and fish: a script generated from the command-line parser.

source <(python -m gradtape completion bash)       # or zsh
python -m gradtape completion fish | source
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

from gradtape._src.help import TOPICS

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
# Completes `python -m gradtape ...`: source <(python -m gradtape completion {shell})
_gradtape() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" first=1
    case "${{COMP_WORDS[0]}}" in
        python*)
            [[ "${{COMP_WORDS[1]}}" == -m && "${{COMP_WORDS[2]}}" == gradtape && $COMP_CWORD -gt 2 ]] || return 0
            first=3 ;;
    esac
    if [[ $COMP_CWORD -eq $first ]]; then
        COMPREPLY=($(compgen -W "{commands}" -- "$cur"))
        return 0
    fi
    case "${{COMP_WORDS[first]}}" in
{cases}
    esac
}}
complete -o default -o bashdefault -F _gradtape python python3 gradtape
"""

_FOR_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


class Command(NamedTuple):
    """A command, its description, its options, and the words that may follow; None: a file."""

    name: str
    text: str
    options: list[str]
    words: list[str] | None


def commands(parser: argparse.ArgumentParser) -> list[Command]:
    """The commands of the parser."""
    inner = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    texts = {a.dest: a.help or "" for a in inner._choices_actions}
    out = []
    for name, sub in inner.choices.items():
        options = [o for a in sub._actions for o in a.option_strings if o.startswith("--")]
        given = [a for a in sub._actions if not a.option_strings]
        words: list[str] | None = [str(c) for a in given for c in a.choices or ()]
        if name == "help":
            words = list(TOPICS)
        elif given and not words:
            words = None
        out.append(Command(name, texts.get(name, ""), options, words))
    return out


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script that a shell runs to complete the command line.

    >>> import argparse
    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_subparsers().add_parser("info", help="what is installed").add_argument("--json")
    >>> print(script("fish", parser).splitlines()[-1])
    complete -c python3 -n "__gradtape_in info" -l json
    """
    all_commands = commands(parser)
    return _fish(all_commands) if shell == "fish" else _bash(all_commands, shell)


def _bash(all_commands: list[Command], shell: str) -> str:
    cases = []
    for c in all_commands:
        words = " ".join([*c.options, *(c.words or [])])
        reply = f'COMPREPLY=($(compgen -W "{words}" -- "$cur"))'
        if c.words is None:  # a file, unless the word begins like an option
            reply = f'[[ "$cur" == -* ]] && {reply}'
        cases.append(f"        {c.name}) {reply} ;;")
    names = " ".join([*(c.name for c in all_commands), "--help", "--version"])
    text = _BASH.format(shell=shell, commands=names, cases="\n".join(cases))
    return _FOR_ZSH + text if shell == "zsh" else text


def _fish(all_commands: list[Command]) -> str:
    lines = [
        "# Completes `python -m gradtape ...`: python -m gradtape completion fish | source",
        "function __gradtape_starts",
        "    set -l w (commandline -opc)",
        "    test (count $w) -eq 3; and test \"$w[2..3]\" = '-m gradtape'",
        "end",
        "function __gradtape_in",
        "    set -l w (commandline -opc)",
        '    test (count $w) -ge 4; and test "$w[2..4]" = "-m gradtape $argv"',
        "end",
    ]
    for python in ("python", "python3"):
        for c in all_commands:
            said = c.text.replace("'", "")
            lines.append(f"complete -c {python} -f -n __gradtape_starts -a {c.name} -d '{said}'")
            if c.words:
                lines.append(f'complete -c {python} -f -n "__gradtape_in {c.name}" -a "{" ".join(c.words)}"')
            lines += [
                f'complete -c {python} -n "__gradtape_in {c.name}" -l {o[2:]}'
                for o in c.options
                if o != "--help"
            ]
    return "\n".join(lines) + "\n"
