"""Print a script that completes commands, options and their words in a shell.

bash: eval "$(dmlc completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc, after compinit. fish: dmlc completion fish
> ~/.config/fish/completions/dmlc.fish. PowerShell: dmlc completion powershell | Out-String | Invoke-Expression in the
profile.
"""

from __future__ import annotations

import argparse
import importlib

from dmlc.cli.console import Console
from dmlc.cli.main import VERBS
from dmlc.cli.parser import Parser
from dmlc.targets import target_names

SHELLS = ("bash", "zsh", "fish", "powershell")
#: CASES are the words after an option, OPTIONS the options of a command. If none are known, the shell completes files.
_BASH = """\
_dmlc() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD - 1]}" verb="${COMP_WORDS[1]}" words=""
    if [ "$COMP_CWORD" = 1 ]; then
        words="COMMANDS"
    else
        case "$verb $prev" in
CASES
        esac
        if [ -z "$words" ] && [ "${cur:0:1}" = - ]; then
            case "$verb" in
OPTIONS
            esac
        fi
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    [ -n "$words" ] || compopt -o default
}
complete -F _dmlc dmlc
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"
_POWERSHELL = """\
Register-ArgumentCompleter -Native -CommandName dmlc -ScriptBlock {
    param($word, $line, $position)
    $given = @($line.CommandElements | ForEach-Object { "$_" })
    if ($word) { $given = @($given | Select-Object -SkipLast 1) }
    $words = "COMMANDS"
    if ($given.Count -gt 1) {
        $words = ""
        switch -CaseSensitive ("$($given[1]) $($given[-1])") {
CASES
        }
        if (-not $words -and $word.StartsWith("-")) {
            switch ($given[1]) {
OPTIONS
            }
        }
    }
    $words -split " " | Where-Object { $_ -and $_.StartsWith($word) } | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, "ParameterValue", $_)
    }
}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")
    parser.set_defaults(format="text", quiet=False, verbose=False)


def run(args: argparse.Namespace, console: Console) -> int:
    actions = {verb: _actions(verb) for verb in VERBS}
    if args.shell == "fish":
        console.result(_fish(actions))
        return 0
    template, case = (_POWERSHELL, '"{0}" {{ $words = "{1}" }}') if args.shell == "powershell" else (_BASH, "")
    case = case or '"{0}") words="{1}" ;;'
    cases = [
        case.format(f"{verb} {option}", " ".join(words))
        for verb, found in actions.items()
        for action in found
        if (words := _words(action))
        for option in action.option_strings or [verb]
    ]
    options = [case.format(verb, " ".join(_options(found))) for verb, found in actions.items()]
    for name, lines in (("CASES", cases), ("OPTIONS", options)):
        template = template.replace(name, "\n".join(f"            {line}" for line in lines))
    script = template.replace("COMMANDS", " ".join(VERBS))
    console.result(_ZSH + script if args.shell == "zsh" else script)
    return 0


def _actions(verb: str) -> list[argparse.Action]:
    """The arguments of a command, as its help shows them."""
    module = importlib.import_module(f"dmlc.cli.{verb}")
    parser = Parser(prog=verb, allow_abbrev=False)
    module.add_arguments(parser)
    if hasattr(module, "add_rest"):
        module.add_rest(parser)
    return [action for action in parser._actions if action.help != argparse.SUPPRESS]


def _words(action: argparse.Action) -> list[str]:
    """The words that an argument takes, as far as they are known."""
    if "--target" in action.option_strings or action.dest == "target":
        return list(target_names())
    return [str(choice) for choice in action.choices or ()]


def _options(actions: list[argparse.Action]) -> list[str]:
    """The options that are words; a letter is as short as its completion."""
    return [option for action in actions for option in action.option_strings if option.startswith("--")]


def _fish(actions: dict[str, list[argparse.Action]]) -> str:
    lines = [f"complete -c dmlc -n __fish_use_subcommand -f -a {verb} -d {_quoted(VERBS[verb])}" for verb in VERBS]
    for verb, found in actions.items():
        for action in found:
            words = " ".join(_words(action))
            values = f" -x -a {_quoted(words)}" if words else " -r" if action.nargs != 0 else ""
            names = "".join(f" -l {name[2:]}" for name in _options([action]))
            if names or words:
                seen = f"complete -c dmlc -n '__fish_seen_subcommand_from {verb}'"
                lines.append(f"{seen}{names}{values} -d {_quoted((action.help or '').replace('%%', '%'))}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """The text as one word of fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
