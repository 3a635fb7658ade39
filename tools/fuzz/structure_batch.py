"""Run structured models in volume, in processes that may crash, and make what fails smaller."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from onnx import ModelProto, ValueInfoProto, inliner

from tools import environment
from tools.fuzz.judge import Failure
from tools.fuzz.reduce import smallest_case
from tools.fuzz.structure_bodies import copied, reads_of
from tools.fuzz.structure_grower import StructureModel
from tools.fuzz.structure_judge import choices, judge, verified
from tools.fuzz.structure_models import generate, loads
from tools.fuzz.structure_types import types_of

#: One model in so many is verified by the package as well.
VERIFIED = 20


def worker(start: int, stop: int, smaller: bool = True) -> None:
    """Judge the models of the seeds; write a line of JSON before what may crash and after each model."""
    for seed in range(start, stop):
        write({"seed": seed, "phase": "generate"})
        case = generate(seed)
        options, counts = choices(seed, case.model), Counter[str]()
        counts.update(f"trait: {trait}" for trait in set(case.traits))
        found = judge(case, options, seed, counts, partial(_write_phase, seed))
        if found is None and counts["compared"] and seed % VERIFIED == 0 and not case.external:
            counts["verified"] += 1
            found = verified(case, options, seed)
        line: dict[str, Any] = {"seed": seed, "counts": counts}
        if found is not None:
            write({"seed": seed, "phase": "smaller", "kind": found.kind, "failure": str(found)})
            text = (smallest(case, found, seed) if smaller else case).text()
            line |= {"options": found.options, "kind": found.kind, "failure": str(found), "text": text}
        write(line)


def _write_phase(seed: int, phase: str) -> None:
    write({"seed": seed, "phase": phase})


def write(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


@dataclass
class Found:
    """Findings of a run of models."""

    models: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def kinds(self) -> Counter[str]:
        return Counter(failure["kind"] for failure in self.failures)


def run_isolated(start: int, stop: int, *, smaller: bool = True, end: float = float("inf")) -> Found:
    """Judge the models of the seeds in a process of their own, which goes on behind a model that crashes it."""
    out, seed = Found(), start
    while seed < stop and time.monotonic() < end:
        seed = _run_worker(out, seed, stop, smaller, end)
    return out


def _run_worker(out: Found, start: int, stop: int, smaller: bool, end: float) -> int:
    """The seed to go on with."""
    command = [sys.executable, "-m", __name__, str(start), str(stop), str(int(smaller))]
    last: dict[str, Any] = {"seed": start, "phase": "start"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as child:
        assert child.stdout is not None
        for text in child.stdout:
            last = json.loads(text)
            if "phase" not in last:
                _record(out, last)
                if time.monotonic() > end:
                    child.terminate()
                    return int(last["seed"]) + 1
    if "phase" in last:
        out.models += 1
        if last["phase"] == "smaller":
            out.failures.append({**last, "text": ""})
        elif last["phase"] in ("generate", "original") and child.returncode < 0:
            out.counts["dropped: ONNX Runtime crashes on the original"] += 1
        else:
            failure = f"the process ended with {child.returncode} in phase {last['phase']}"
            out.failures.append({"seed": last["seed"], "kind": "crash", "failure": failure, "text": ""})
    return int(last["seed"]) + 1


def _record(out: Found, line: dict[str, Any]) -> None:
    out.models += 1
    out.counts.update(line["counts"])
    if "kind" in line:
        out.failures.append(line)


def smallest(case: StructureModel, failure: Failure, seed: int, *, tries: int = 250) -> StructureModel:
    """A smaller model that fails in the same way."""

    def fails(candidate: StructureModel) -> bool:
        try:
            check = verified if failure.kind == "verify" else judge
            found = check(candidate, failure.options, seed)
        except Exception:  # the rest is not a model that runs
            return False
        return found is not None and found.kind == failure.kind

    return smallest_case(case, _smaller, fails, tries)


def _smaller(case: StructureModel) -> Iterator[StructureModel]:
    for candidate in _parts(case):
        if candidate.model != case.model and candidate.model.graph.output and loads(candidate.model):
            yield candidate


def _parts(case: StructureModel) -> Iterator[StructureModel]:
    model = case.model
    if case.external:
        yield replace(case, external=False)
    for place in range(len(model.graph.output)):
        copy = copied(model)
        if len(copy.graph.output) > 1:
            del copy.graph.output[place]
            yield replace(case, model=_clean(copy))
    known = {i.name: i for i in (*model.graph.value_info, *model.graph.output, *_inferred(model))}
    for node in reversed(model.graph.node):  # end at a node's result
        name = node.output[0] if node.output else ""
        if name in known and name not in {i.name for i in model.graph.output}:
            copy = copied(model)
            copy.graph.ClearField("output")
            copy.graph.output.append(known[name])
            yield replace(case, model=_clean(copy))
    for place, node in enumerate(model.graph.node):  # begin at a node's result
        names = [n for n in node.output if n]
        if node.op_type != "Constant" and all(n in known and known[n].type.HasField("tensor_type") for n in names):
            copy = copied(model)
            del copy.graph.node[place]
            copy.graph.input.extend(ValueInfoProto.FromString(known[n].SerializeToString()) for n in names)
            yield replace(case, model=_clean(copy))
    for place, node in enumerate(model.graph.node):  # pass a node by
        for source in node.input:
            if source and len(node.output) == 1 and node.output[0] not in {i.name for i in model.graph.output}:
                yield replace(case, model=_clean(_passed_by(model, place, source)))
    yield from _plainer(case)


def _plainer(case: StructureModel) -> Iterator[StructureModel]:
    model = case.model
    copy = copied(model)
    copy.graph.ClearField("value_info")
    yield replace(case, model=copy)
    held = {t.name for t in model.graph.initializer}
    for place, info in enumerate(model.graph.input):
        if info.name in held:
            copy = copied(model)
            del copy.graph.input[place]
            yield replace(case, model=copy)
    if model.functions:
        yield replace(case, model=_clean(inliner.inline_local_functions(model)))
    for place in range(len(model.functions)):
        copy = copied(model)
        del copy.functions[place]
        yield replace(case, model=copy)
    copy = copied(model)
    for node in copy.graph.node:
        node.name = ""
    yield replace(case, model=copy)
    for place, node in enumerate(model.graph.node):  # a smaller body
        for which, attribute in enumerate(node.attribute):
            if attribute.HasField("g"):
                for inner in range(len(attribute.g.node)):
                    yield from _without_inner(case, place, which, inner)


def _without_inner(case: StructureModel, place: int, which: int, inner: int) -> Iterator[StructureModel]:
    body = case.model.graph.node[place].attribute[which].g
    node = body.node[inner]
    for source in node.input:
        if source and len(node.output) == 1:
            copy = copied(case.model)
            twin = copy.graph.node[place].attribute[which].g
            del twin.node[inner]
            for other in twin.node:
                for position, name in enumerate(other.input):
                    if name == node.output[0]:
                        other.input[position] = source
            for info in twin.output:
                if info.name == node.output[0]:
                    info.name = source
            yield replace(case, model=copy)


def _passed_by(model: ModelProto, place: int, source: str) -> ModelProto:
    copy = copied(model)
    old = copy.graph.node[place].output[0]
    del copy.graph.node[place]
    for node in copy.graph.node:
        for position, name in enumerate(node.input):
            if name == old:
                node.input[position] = source
    return copy


def _inferred(model: ModelProto) -> list[ValueInfoProto]:
    return [ValueInfoProto(name=name, type=kind) for name, kind in types_of(model).items()]


def _clean(model: ModelProto) -> ModelProto:
    """Without nodes, inputs, weights and functions that nothing uses."""
    out = copied(model)
    graph = out.graph
    used, nodes = {info.name for info in graph.output}, []
    for node in reversed(model.graph.node):
        if used.intersection(node.output):
            nodes.append(node)
            used |= reads_of(node)
    graph.ClearField("node")
    graph.node.extend(reversed(nodes))
    made = {name for node in nodes for name in node.output}
    graph.ClearField("input")
    graph.input.extend(info for info in model.graph.input if info.name in used - made)
    graph.ClearField("initializer")
    graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in used)
    graph.ClearField("value_info")
    graph.value_info.extend(info for info in model.graph.value_info if info.name in made)
    return out


if __name__ == "__main__":
    worker(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1")
