"""Our inference beside ONNX's own, value by value: contradictions, and who knows more, by operator.

``python -m tools.onnx_comparison --models 5000`` compares the node tests, the model fixtures and generated
models (arithmetic and structural), and prints the lists.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import onnx
from onnx import GraphProto, ModelProto, TypeProto, shape_inference

from dmlc.inference import Fact
from dmlc.inference.model_facts import GraphFacts, facts_of_model
from dmlc.inference.protos import type_proto_of
from dmlc.onnx_schema.declared import contradicts
from dmlc.onnx_schema.nested import graphs_of
from tools.fixture_folder import fixture_folder
from tools.fuzz import onnx_models, structure_models
from tools.node_tests import onnx_node_tests

#: A size: a number, or None where it is open.
Sizes = Sequence["int | None"]


@dataclass
class Comparison:
    """Counts of values by operator; examples of contradictions and of what only ONNX knows."""

    values: int = 0
    equal: int = 0
    more: Counter[str] = field(default_factory=Counter)
    less: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    contradictions: list[str] = field(default_factory=list)

    def model(self, name: str, model: ModelProto) -> None:
        """Compare all values of a model that declares nothing but its inputs."""
        bare = undeclared(model)
        known = facts_of_model(bare)
        other = ModelProto(ir_version=bare.ir_version, graph=known.graph)
        other.opset_import.extend(bare.opset_import)
        fed = {info.name for info in other.graph.input}
        kept = [tensor for tensor in other.graph.initializer if tensor.name not in fed]  # ONNX takes defaults for facts
        del other.graph.initializer[:]
        other.graph.initializer.extend(kept)
        _sort_squeezed_axes(other.graph)
        theirs = shape_inference.infer_shapes(other, data_prop=True)
        self._graph(name, known.graph, theirs.graph, known.facts)

    def _graph(self, name: str, graph: GraphProto, theirs: GraphProto, facts: GraphFacts) -> None:
        types = {info.name: info.type for infos in (theirs.value_info, theirs.output) for info in infos}
        for number, (node, twin) in enumerate(zip(graph.node, theirs.node, strict=True)):
            for output in node.output:
                if output:
                    self._value(f"{name}: {output}", node.op_type, facts.of.get(output, Fact()), types.get(output))
            inner = facts.inner.get(number, [])
            for one, other, its in zip(graphs_of(node), graphs_of(twin), inner, strict=False):
                self._graph(name, one, other, its)

    def _value(self, name: str, op_type: str, fact: Fact, type: TypeProto | None) -> None:
        self.values += 1
        kind = None if type is None else type.WhichOneof("value")
        if type is not None and (fact.proto or kind not in (None, "tensor_type")):
            own = type_proto_of(fact) if fact.proto or fact.element else TypeProto()
            self._container(name, op_type, own, type)
            return
        element, shape = (0, None) if type is None else (type.tensor_type.elem_type, sizes_of(type))
        ours = None if fact.shape is None else [d if isinstance(d, int) else None for d in fact.shape]
        if fact.element and element and fact.element != element:
            self.contradictions.append(f"{name} of {op_type}: element type {fact.element}, not {element}")
        elif ours is not None and shape is not None and not agree(ours, shape):
            self.contradictions.append(f"{name} of {op_type}: {ours}, not {shape}")
        elif (element and not fact.element) or is_less(ours, shape):
            self._less(op_type, f"{name}: {fact.element} {ours}, not {element} {shape}")
        elif (fact.element and not element) or is_less(shape, ours):
            self.more[op_type] += 1
        else:
            self.equal += 1

    def _container(self, name: str, op_type: str, ours: TypeProto, theirs: TypeProto) -> None:
        """Compare the types of a sequence, an optional or a map."""
        if contradicts(ours, theirs):
            self.contradictions.append(f"{name} of {op_type}: {ours}, not {theirs}")
        elif ours.WhichOneof("value") is None:
            self._less(op_type, f"{name}: {theirs}")
        elif theirs.WhichOneof("value") is None:
            self.more[op_type] += 1
        else:
            self.equal += 1

    def _less(self, op_type: str, text: str) -> None:
        self.less[op_type] += 1
        if len(self.examples[op_type]) < 5:
            self.examples[op_type].append(text)


def sizes_of(type: TypeProto) -> list[int | None] | None:
    """The sizes; None for an unknown rank. ONNX also writes -1 for a size that it does not know."""
    if not type.tensor_type.HasField("shape"):
        return None
    dims = type.tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in dims]


def agree(a: Sizes, b: Sizes) -> bool:
    return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))


def is_less(a: Sizes | None, b: Sizes | None) -> bool:
    """True if ``a`` leaves something open that ``b`` has."""
    if b is None:
        return False
    return a is None or any(x is None and y is not None for x, y in zip(a, b, strict=False))


def _sort_squeezed_axes(graph: GraphProto) -> None:
    """Sort the axes of each Squeeze before opset 13. ONNX's inference drops the first of unsorted axes only
    (onnx/defs/tensor/old.cc walks sizes and axes together); ONNX Runtime drops all."""
    for node in graph.node:
        for attribute in node.attribute if node.op_type == "Squeeze" else ():
            if attribute.name == "axes" and len({axis < 0 for axis in attribute.ints}) == 1:
                attribute.ints[:] = sorted(attribute.ints)
        for inner in graphs_of(node):
            _sort_squeezed_axes(inner)


def undeclared(model: ModelProto) -> ModelProto:
    """The model without the declared types of its values and outputs, in graphs inside nodes too."""
    out = ModelProto()
    out.CopyFrom(model)
    _undeclare(out.graph)
    return out


def _undeclare(graph: GraphProto) -> None:
    del graph.value_info[:]
    for info in graph.output:
        info.ClearField("type")
    for node in graph.node:
        for inner in graphs_of(node):
            _undeclare(inner)


# --- models


def node_tests() -> Iterator[tuple[str, ModelProto]]:
    for name, case in onnx_node_tests().items():
        yield name, case.model


def fixtures() -> Iterator[tuple[str, ModelProto]]:
    folder = fixture_folder()
    for path in () if folder is None else sorted(folder.rglob("*.onnx")):
        yield path.stem, onnx.load(path, load_external_data=False)


def generated(seeds: Iterable[int]) -> Iterator[tuple[str, ModelProto]]:
    """One model for each seed: arithmetic of even ones, structural of odd ones."""
    for seed in seeds:
        try:
            if seed % 2:
                yield f"structural {seed}", structure_models.generate(seed).model
            else:
                yield f"arithmetic {seed}", onnx_models.generate(seed)
        except onnx_models.MisfitError:
            continue


def main() -> None:
    """Print the figures and lists."""
    parser = argparse.ArgumentParser(prog="python -m tools.onnx_comparison", description=__doc__)
    parser.add_argument("--models", type=int, default=1000, help="generated models")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    seeds = range(arguments.start, arguments.start + arguments.models)
    for name, models in (("node tests", node_tests()), ("fixtures", fixtures()), ("generated", generated(seeds))):
        found, count = Comparison(), 0
        for label, model in models:
            found.model(label, model)
            count += 1
        totals = f"{found.values} values: {found.equal} equal, {found.more.total()} more, {found.less.total()} less"
        print(f"{name}: {count} models, {totals}, {len(found.contradictions)} contradictions")
        for text in found.contradictions:
            print("  contradiction:", text)
        print("  more:", ", ".join(f"{op} {n}" for op, n in found.more.most_common()))
        for op_type, n in found.less.most_common():
            print(f"  less: {op_type} {n}")
            for example in found.examples[op_type]:
                print("    ", example)


if __name__ == "__main__":
    main()
