"""The rewrite driver: rules of three small methods, applied until none fires.

A rule names the operations it starts from, so nodes that no rule starts from cost one look-up. ``match`` finds the
pattern, ``check`` says why it must not fire, ``build`` makes the new values. A rule that fired is in the context's
ledger and on the new nodes. A match that did not fire is a remark, whose text is made only when it is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct

from dmlc.diagnostics import Span, fail
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.ir import Attributes, Condition, Graph, Kind, Node, Operation, OpError, Tensor, Value
from dmlc.ir.history import History, merged_history
from dmlc.ir.providers import fix_dims, numbers_of
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE, node_name, title_of
from dmlc.ops.ranges import range_text
from dmlc.passes.expressions import Formulas
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, Pass, PassContext
from dmlc.targets.capabilities import Capabilities

#: A node keeps at most so many places it came from; long chains would otherwise cost their square.
MAX_SPANS = 32

_PERMIT = {
    "reassociates": "it reassociates: rounding may differ, and only exact rewrites are allowed here",
    "range": "it is equal only where no partial result leaves its range (--allow range)",
}


class Miss(Struct, frozen=True):
    """A reason why a matched rule does not apply. ``text`` is a format string, filled in when it is read.

    ``arguments`` must not change later (types, names, numbers). ``value`` is the value that caused it, if there is one.
    ``saves`` is how many operators the rewrite would save, where the rule knows: 0 where it costs more. ``match`` is
    what would have been rewritten, if a whole pattern was found.
    """

    text: str
    arguments: tuple[object, ...] = ()
    value: Value | None = None
    saves: int | None = None
    match: Any = None

    def __str__(self) -> str:
        return self.text.format(*self.arguments)


class Match(Struct, eq=False):
    """A match of a rule: the root, and the further nodes whose work the new nodes do."""

    root: Node
    consumed: tuple[Node, ...] = ()


M = TypeVar("M", bound=Match)


class Rewriter(Formulas):
    """Node factory of ``build``. New nodes stand before the root and keep all source locations and rules.

    ``constants`` are those that the pass has made in the graph so far.
    """

    __slots__ = ("conditions", "constants", "given", "history", "made", "nodes", "path", "root", "spans")

    def __init__(
        self,
        graph: Graph,
        rule: str,
        match: Match,
        rewrite_class: str = EXACT,
        constants: dict[Tensor, Node] | None = None,
    ) -> None:
        nodes = (match.root, *match.consumed)
        self.graph = graph
        self.conditions: int = len(graph.conditions)
        self.constants: dict[Tensor, Node] = {} if constants is None else constants
        self.root: Node = match.root
        self.made: list[Node] = []
        self.spans: tuple[Span, ...] = merge_spans(nodes)
        self.history: History = merged_history([(node.name, node.history) for node in nodes], rule, rewrite_class)
        self.nodes: tuple[Node, ...] = nodes
        self.given: set[str] = set()
        self.path: str = (
            _path(self.history.sources[0]) if self.history.sources else node_name(match.root).rpartition("/")[0]
        )

    def undo(self) -> None:
        """Erase the nodes made so far, and the conditions that they added to the graph."""
        self.graph.erase_dead(self.made)
        self.made.clear()
        while len(self.graph.conditions) > self.conditions:
            self.graph.conditions.popitem()

    def add_node(self, op: Operation, operands: Sequence[Value | None], attributes: Attributes | None = None) -> Node:
        node, conditions = self.graph.draft(op, operands, op.attributes() if attributes is None else attributes)
        self.adopt(node, conditions)
        return node

    def adopt(self, node: Node, conditions: Sequence[Condition]) -> None:
        """Put a drafted node before the root."""
        node.spans, node.history = self.spans, self.history
        self.graph.place(node, conditions, self.root)
        if self.path and node.op is not CONSTANT:
            self._name(node, f"{self.path}/{title_of(node)}")
        self.made.append(node)

    def _name(self, node: Node, base: str) -> None:
        """Name a new node ``base``, or as an old node of such a name that goes."""
        alike = [old for old in self.nodes if old.name.startswith(base) and old.name not in self.given]
        replaced = [old.name for old in alike if old is self.root or not _is_used_beside(old, self.nodes)]
        self.graph.name_node(node, base, replaces=replaced)
        self.given.add(node.name)

    def shared_constant(self, tensor: Tensor) -> Value:
        """A constant at the start of the graph; one for all equal ones that the pass asks for."""
        node = self.constants.get(tensor)
        if node is None or node.graph is not self.graph:
            record, first = ConstantAttributes(value=tensor), next(iter(self.graph))
            node = self.graph.add(CONSTANT, (), record, spans=self.spans, history=self.history, before=first)
            self.constants[tensor] = node
        self.made.append(node)
        return node.result

    def inline(self, inner: Graph, mapping: dict[Value, Value]) -> list[Value]:
        """The nodes of another graph before the root; ``mapping`` says what its inputs are here. Its outputs."""
        known = dict(mapping)
        for node in inner:
            operands = [None if v is None else known[v] for v in node.operands]
            twin = self.graph.add(
                node.op,
                operands,
                node.attributes,
                spans=self.spans,
                history=self.history,
                before=self.root,
                regions=node.regions,
            )
            twin.name, twin.origin = node.name, node.origin
            self.made.append(twin)
            for old, new in zip(node.results, twin.results, strict=True):
                new.name = old.name
                if old in inner.provides:
                    self.graph.provides[new] = inner.provides[old]
                known[old] = new
        return [known[value] for _, value in inner.outputs]


def _taken(match: Match) -> list[Node]:
    """The nodes of a match that nothing else needs: they go when it is rewritten."""
    nodes = (match.root, *match.consumed)
    return [node for node in dict.fromkeys(nodes) if node is match.root or not _is_used_beside(node, nodes)]


def _is_used_beside(node: Node, nodes: Collection[Node]) -> bool:
    return any(user not in nodes for result in node.results for user, _ in result.uses)


def _path(name: str) -> str:
    """The module that an exporter put a node into, by its name; the name itself where it has no path."""
    return name.rpartition("/")[0] or name


def names_after(made: Iterable[Node]) -> tuple[str, ...]:
    """The names of the new nodes of a rewrite; a constant is not a node of the emitted model, unless all are."""
    made = tuple(made)
    return tuple([node_name(node) for node in made if node.op is not CONSTANT] or [node_name(node) for node in made])


def merge_spans(nodes: Iterable[Node]) -> tuple[Span, ...]:
    """The places of all nodes, each once, at most ``MAX_SPANS``."""
    nodes = tuple(nodes)
    if len(nodes) == 1:
        return nodes[0].spans
    return tuple(dict.fromkeys([span for node in nodes for span in node.spans]))[:MAX_SPANS]


def _promises(graph: Graph, names: Sequence[str]) -> str:
    """Name the promised ranges that a rewrite relies on, for the ledger."""
    return "; promised: " + ", ".join([f"{name} in {range_text(graph.ranges[name])}" for name in names])


class Rule(ABC, Generic[M]):
    """One rewrite, made for one context: its target's capabilities, and what the user allows and asks for.

    ``roots`` are the operations it starts from, ``rewrite_class`` its class on the language reference.

    The first line of the docstring says what becomes of what; ``optional`` is false for what the target must have.
    ``repairs`` are the ids of the provider's known faults that it works around.
    Where ``fed_by`` names operations, one of them makes an operand of every root that matches: others are not visited.
    ``may_not_fit`` is true if the new nodes may contradict sizes that are known: those of a branch that never runs.
    """

    name: ClassVar[str]
    optional: ClassVar[bool] = True
    roots: ClassVar[tuple[Operation, ...]]
    fed_by: ClassVar[Collection[Operation]] = ()
    rewrite_class: ClassVar[str] = EXACT
    repairs: ClassVar[tuple[str, ...]] = ()
    may_not_fit: ClassVar[bool] = False

    def __init__(self, context: PassContext) -> None:
        self.context = context
        self.capabilities: Capabilities = context.capabilities

    @abstractmethod
    def match(self, node: Node, graph: Graph) -> M | Miss | None:
        """The pattern at this root, None where it is not there, and a reason where a part of it is another.

        Cheap: it runs on every root.
        """

    def check(self, match: M, graph: Graph) -> Miss | None:
        """Return the reason why the rule does not apply here; None if it applies."""
        return None

    def class_of(self, match: M, graph: Graph, context: PassContext) -> str:
        """The class of this application, where it depends on dtypes or the target."""
        return self.rewrite_class

    def relies_on(self, match: M, graph: Graph) -> tuple[str, ...]:
        """The inputs whose promised ranges give the precondition of an application of class ``range``; none if they do
        not. Such an application is ``reassociates``, and the ledger names the promises."""
        return ()

    def describe(self, match: M) -> str:
        """Describe the rewrite in a few words for the ledger."""
        return " of ".join([match.root.op.name, *(node.op.name for node in match.consumed)])

    @abstractmethod
    def build(self, match: M, rewriter: Rewriter) -> Sequence[Value]:
        """The values that replace the root's results."""


def rules_of(*modules: Mapping[str, Any]) -> tuple[type[Rule[Any]], ...]:
    """Return the rules that modules define, in their order. A module is its ``globals()``, or its ``vars``."""
    own = [cls for names in modules for cls in names.values() if getattr(cls, "__module__", "") == names["__name__"]]
    return tuple([cls for cls in own if isinstance(cls, type) and issubclass(cls, Rule) and "name" in vars(cls)])


class RewritePass(Pass, frozen=True):
    """A pass that is a list of rules."""

    @abstractmethod
    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        """The rules for the context's target and opset."""

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)


def rewrite(graph: Graph, rules: Sequence[type[Rule[Any]]], context: PassContext) -> bool:
    """Apply the rules everywhere until none fires; whether any did. Linear where nothing matches."""
    index = rules_by_root(tuple([rule for rule in rules if not rule.optional or context.wants(rule.name)]))
    if not graph.retyped and not graph.holds(index):
        return False
    return Driver(graph, index, context).run()


def used_elsewhere(value: Value) -> Miss | None:
    """The reason against taking over the work of a value's producer, where others need the value too."""
    if value.is_used_once:
        return None
    return Miss("{0} is used {1} times (being an output counts)", (_name(value), len(value.uses)), value)


def _name(value: Value) -> str:
    if value.name is not None:
        return value.name
    return f"the result of {value.producer.op.name}" if value.producer is not None else "an input"


@lru_cache(maxsize=1024)
def rules_by_root(rules: tuple[type[Rule[Any]], ...]) -> dict[Operation, list[type[Rule[Any]]]]:
    """Return the classes of rules by the operations of their roots. They depend on no graph: all graphs share them."""
    index: dict[Operation, list[type[Rule[Any]]]] = {}
    for rule in rules:
        for op in rule.roots:
            index.setdefault(op, []).append(rule)
    return index


class Driver:
    """Offers the nodes of a graph to the rules of their operations, and applies the first that matches."""

    def __init__(self, graph: Graph, index: dict[Operation, list[type[Rule[Any]]]], context: PassContext) -> None:
        self.graph = graph
        self.context = context
        self.index = index
        self.made: dict[type[Rule[Any]], Rule[Any]] = {}
        self.by_root: dict[Operation, tuple[Rule[Any], ...]] = {}
        self.by_kind: dict[Kind, tuple[Rule[Any], ...]] = {}
        self.idle: set[Kind] = set()
        self.missed: set[Node] = set()
        self.pending: deque[Node] = deque()
        self.queued: set[Node] = set()
        self.misses: dict[tuple[Node, Rule[Any]], tuple[Miss, Match | None]] = {}
        self.constants: dict[Tensor, Node] = {}
        self.sizes: dict[str, int] = {}
        self.fuel = 64 * len(graph) + 1024
        self.changed = False

    def run(self) -> bool:
        self._settle()
        for node in self.graph.nodes_except(self.idle, self.index):
            rules = self._rules(node)
            if rules:
                self._visit(node, rules)
            if self.pending:
                self._visit_pending()
        while self.sizes:
            self._fix_sizes()
            self._visit_pending()
        for (node, rule), (miss, match) in self.misses.items():
            if node.graph is self.graph:
                takes = 0 if match is None else sum(taken.op is not CONSTANT for taken in _taken(match))
                places, name = _places(node, miss.value), node_name(node)
                self.context.missed(rule.name, partial(str, miss), places, name, saves=miss.saves, takes=takes)
        return self.changed

    def _visit_pending(self) -> None:
        while self.pending:
            again = self.pending.popleft()
            self.queued.discard(again)
            if again.graph is self.graph:
                self._visit(again, self._rules(again))

    def _fix_sizes(self) -> None:
        """Put the numbers of the dims that are known by now in their places."""
        sizes, self.sizes = self.sizes, {}
        self.changed |= fix_dims(self.graph, sizes)
        self._settle()

    def _rules(self, node: Node) -> tuple[Rule[Any], ...]:
        """The rules that may match at a node: all of its operation where a miss of an earlier visit may be over."""
        if node in self.missed:
            return self._of_root(node.op)
        kind = node.kind
        found = self.by_kind.get(kind)
        if found is None:
            op, makers = kind
            found = tuple([r for r in self._of_root(op) if not r.fed_by or not makers.isdisjoint(r.fed_by)])
            self.by_kind[kind] = found
            if not found:
                self.idle.add(kind)
        return found

    def _of_root(self, op: Operation) -> tuple[Rule[Any], ...]:
        """The rules that start from an operation, made when the graph has it. A rule of several roots is made once."""
        found = self.by_root.get(op)
        if found is None:
            for rule in self.index[op]:
                if rule not in self.made:
                    self.made[rule] = rule(self.context)
            found = self.by_root[op] = tuple([self.made[rule] for rule in self.index[op]])
        return found

    def _visit(self, node: Node, rules: Sequence[Rule[Any]]) -> None:
        for rule in rules:
            match = rule.match(node, self.graph)
            if match is None:
                if node in self.missed:
                    self.misses.pop((node, rule), None)
                continue
            whole = match.match if isinstance(match, Miss) else match
            if isinstance(match, Miss):
                miss = match
            elif (found := rule.check(match, self.graph)) is not None:
                miss = found
            else:
                rewrite_class = rule.class_of(match, self.graph, self.context)
                promise = ""
                if rewrite_class == RANGE and self.graph.ranges:
                    names = rule.relies_on(match, self.graph)
                    if names:
                        rewrite_class, promise = REASSOCIATES, _promises(self.graph, names)
                if rewrite_class not in self.context.options.allowed:
                    miss = Miss(_PERMIT[rewrite_class])
                else:
                    refused = self._apply(rule, match, rewrite_class, promise)
                    if refused is None:
                        return
                    miss = refused
            self.misses[node, rule] = miss, whole
            self.missed.add(node)

    def _apply(self, rule: Rule[Any], match: Match, rewrite_class: str, promise: str = "") -> Miss | None:
        """Rewrite; or the reason why not, where parts of the new nodes have open sizes that are not known to fit."""
        graph, root = self.graph, match.root
        self.fuel -= 1
        if self.fuel < 0:
            raise fail(INTERNAL, f"rule {rule.name} does not come to an end at a {root.op.name}", exit_code=3)
        text = rule.describe(match) + promise
        before = tuple([node_name(node) for node in (root, *match.consumed)])
        touched = [v for node in (root, *match.consumed) for v in node.operands if v is not None]
        rewriter = Rewriter(graph, rule.name, match, rewrite_class, self.constants)
        try:
            values = rule.build(match, rewriter)
        except OpError as error:
            if not rule.may_not_fit and all(value.type.is_static for value in touched):
                raise  # nothing is open here: the rule is wrong
            rewriter.undo()
            return Miss("{0}", (str(error),))
        self.changed = True
        for old, new in zip(root.results, values, strict=True):
            is_constant = new.producer is not None and new.producer.op is CONSTANT
            for user in old.users:
                self._push(user)
                if is_constant:
                    _tell_constant(graph, user, old, new)
            provided = graph.provides.get(old, ())
            graph.replace_all_uses(old, new)
            self.sizes |= numbers_of(provided, new)
        self._settle()
        erased = [node_name(node) for node in graph.erase_dead((root, *match.consumed)) if node.op is not CONSTANT]
        before += tuple([name for name in erased if name not in before])
        for node in rewriter.made:
            self._push(node)
        for value in touched:
            if len(value.uses) == 1:  # a rule that wants a value of one use may fire now
                self._push(next(iter(value.uses))[0])
        after = names_after([node for node in rewriter.made if node.graph is graph])
        self.context.record(rule.name, rewrite_class, text, rewriter.spans, before, after)
        return None

    def _settle(self) -> None:
        """Infer anew what depends on values that have other types by now."""
        graph = self.graph
        while graph.retyped:
            node, _ = graph.retyped.popitem()
            if node.graph is not graph or node is graph.output:
                continue
            before = [value.type for value in node.results]
            if node.op in (OPAQUE, OPAQUE_IMPURE):
                graph.outdated[node] = None
                if node.regions:
                    from dmlc.passes.graphs_inside import settle_types  # only imported graphs have such nodes

                    settle_types(node)
            else:
                try:
                    graph.reinfer(node)
                except OpError:
                    continue  # it stays as it was: run time reports what does not fit
            for value, type in zip(node.results, before, strict=True):
                if value.type != type:
                    self.changed = True
                    self.sizes |= numbers_of(graph.provides.get(value, ()), value)
                    graph.retyped.update(dict.fromkeys(value.users))
            self._push(node)

    def _push(self, node: Node) -> None:
        if node.op in self.index and node not in self.queued:
            self.queued.add(node)
            self.pending.append(node)


def _tell_constant(graph: Graph, user: Node, old: Value, new: Value) -> None:
    """Note that an operand of a node is a constant by now. Graphs inside the node get a constant of their own."""
    if user.op not in (OPAQUE, OPAQUE_IMPURE):
        return
    graph.outdated[user] = None
    assert new.producer is not None
    for region in user.regions:
        for value, place in zip(region.captured, region.captures, strict=True):
            if user.operands[place] is old and value.uses:
                inner = region.graph
                made = inner.add(CONSTANT, (), new.producer.attributes, before=next(iter(inner), None))
                inner.outdated.update(dict.fromkeys([node for node in value.users if node.op is OPAQUE]))
                inner.replace_all_uses(value, made.result)


def _places(node: Node, value: Value | None) -> tuple[Span, ...]:
    places = node.spans[:1]
    if value is not None:
        guilty = value.producer.spans[:1] if value.producer is not None else (value.span,) if value.span else ()
        places = (*places, *[p for p in guilty if p not in places])
    return places
