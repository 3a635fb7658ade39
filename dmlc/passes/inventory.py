"""The rules that users can name, read off the pipelines: nothing is listed twice, nothing by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dmlc.diagnostics import did_you_mean, fail
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.given import listed
from dmlc.passes.decompose import Decompose
from dmlc.passes.manager import Pass, PassContext, PassManager
from dmlc.passes.pipeline import default_pipeline
from dmlc.passes.rewrite import RewritePass, Rule
from dmlc.targets import load_target, target_names


class RuleFacts(Struct, frozen=True):
    """A rule as a user sees it.

    ``kind`` is the rule's class, or the class of a pass that is a rule itself. ``depends`` says that the rewrite class
    of an application depends on dtypes or the target; ``rewrite_class`` is what it is otherwise. ``passes`` are the
    passes that have the rule, in the order in which they run.
    """

    name: str
    kind: type
    passes: tuple[str, ...]
    rewrite_class: str
    depends: bool
    optional: bool
    summary: str


@lru_cache(maxsize=1)
def all_rules() -> tuple[RuleFacts, ...]:
    """Every rule of every target's passes, in the order in which they first run."""
    found: dict[str, RuleFacts] = {}
    for step, context in _steps():
        rules = step.rules(context) if isinstance(step, RewritePass) else [type(step)] if step.optional else []
        for rule in rules:
            known = found.get(rule.name)
            if known is None:
                found[rule.name] = _facts(rule, step.name)
            elif step.name not in known.passes:
                found[rule.name] = replace(known, passes=(*known.passes, step.name))
    return tuple(found.values())


def pass_names() -> tuple[str, ...]:
    """The names of all passes."""
    return tuple(dict.fromkeys(step.name for step, _ in _steps()))


def chosen_rules(skip: Iterable[str], only: Iterable[str] | None) -> tuple[frozenset[str], frozenset[str] | None]:
    """The rules to leave out, and those to leave in, as a user names them.

    Raises ``DmlcError`` E0556 (exit code 2) for a name that is none, and for leaving out what targets need.
    """
    skipped = frozenset(_known("skip_rules", skip))
    for rule in all_rules() if skipped else ():
        if rule.name in skipped and not rule.optional:
            message = f"rule {rule.name} cannot be skipped: a target cannot do without it"
            raise fail(codes.UNKNOWN_CHOICE, message, exit_code=2)
    return skipped, None if only is None else frozenset(_known("only_rules", only))


def _known(option: str, names: Iterable[str]) -> list[str]:
    names = listed(option, names)
    if not names:
        return []
    rules = {rule.name: rule for rule in all_rules()}
    for name in names:
        if name in rules:
            continue
        members = [rule.name for rule in rules.values() if name in rule.passes]
        if members:
            help = f"it is a pass; its rules are {', '.join(members)}"
        else:
            help = did_you_mean(name, rules) or "dmlc compile --list-rules lists them"
        raise fail(codes.UNKNOWN_CHOICE, f"there is no rule {name}", help=help, exit_code=2)
    return names


def _steps() -> list[tuple[Pass, PassContext]]:
    """The passes of all targets, nested ones too, each with a context of its target."""
    out: list[tuple[Pass, PassContext]] = []
    for name in target_names():
        target = load_target(name)
        context = PassContext(target, target.opset)
        # Options may add rules but take none away, so that one pipeline a target shows them all.
        pending: list[Pass] = [default_pipeline(target, context.options), Decompose()]
        while pending:
            step = pending.pop(0)
            if isinstance(step, PassManager):
                pending[:0] = step.passes
            else:
                out.append((step, context))
    return out


def _facts(rule: type[Rule[Any] | Pass], step: str) -> RuleFacts:
    return RuleFacts(
        name=rule.name,
        kind=rule,
        passes=(step,),
        rewrite_class=rule.rewrite_class,
        depends=issubclass(rule, Rule) and rule.class_of is not Rule.class_of,
        optional=rule.optional,
        summary=_summary(rule),
    )


def _summary(rule: type[Rule[Any] | Pass]) -> str:
    """The first sentence of the docstring, or what a pass says of itself."""
    if issubclass(rule, Pass):
        return rule.summary
    paragraph = " ".join((rule.__doc__ or "").partition("\n\n")[0].split()).replace("``", "")
    return re.split(r"(?<=\.) ", paragraph)[0]
