"""The kernels of ONNX Runtime's WebGPU provider, asked of the installed package: ``dmlc/targets/data/webgpu_ep.json``.

Each operator, version and element type is one node in a session that is made and not run. ONNX Runtime's own log says
``webgpu kernel not found in registries`` of it, or how many copies it added because the node reads an operand on the
CPU. The known faults in the file are kept: they are written by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import onnxruntime
from msgspec import Struct
from onnx import ModelProto, defs, helper
from onnxruntime.capi import onnxruntime_pybind11_state as binding

from tools import ROOT
from tools.webgpu_runs import Log, settings_of

FILE = ROOT / "dmlc" / "targets" / "data" / "webgpu_ep.json"
MICROSOFT = "com.microsoft"
#: Names of types in the table, by the text of ONNX's schemas, each with its number.
TYPES = {
    "tensor(float)": ("f32", 1), "tensor(float16)": ("f16", 10), "tensor(double)": ("f64", 11),
    "tensor(int32)": ("i32", 6), "tensor(uint32)": ("u32", 12), "tensor(int64)": ("i64", 7),
    "tensor(uint64)": ("u64", 13), "tensor(uint8)": ("u8", 2), "tensor(int8)": ("i8", 3),
    "tensor(uint16)": ("u16", 4), "tensor(int16)": ("i16", 5), "tensor(bool)": ("bool", 9),
}  # fmt: skip
#: The opsets of which ONNX Runtime has kernels.
FIRST, LAST = 7, 24
#: Operators that ONNX Runtime declares in ONNX's own domain.
_OWN = frozenset(("SimplifiedLayerNormalization",))
#: Results that are written on the CPU (onnxruntime, providers/webgpu/tensor/shape.cc).
_HOST_RESULTS = {"Shape": [0]}
#: The row of If, whose graphs no question here has: its condition is read on the CPU (onnxruntime, webgpu_ep.cc).
_IF = {"op": "If", "opsets": [[FIRST, LAST]], "inputs": ["B"], "outputs": ["V"], "host_operands": [0]}
#: The opset whose form of an operator a row has.
_USUAL = 21
#: Operators that are not asked: a graph inside, or no kernel of a device.
LEFT_OUT = frozenset(("Constant", "If", "Loop", "Scan", "SequenceMap", "Optional"))
#: Values of attributes that a node cannot do without.
REQUIRED: Mapping[str, Any] = {
    "to": 1, "axis": 0, "axes": [0], "kernel_shape": [2, 2], "blocksize": 2, "perm": [0, 1], "pads": [0, 0, 0, 0],
    "equation": "ij,jk->ik", "num_heads": 4, "kv_num_heads": 4, "N": 16, "K": 16, "bits": 4, "block_size": 32,
    "groups": 1, "num_groups": 1, "epsilon": 1e-5, "hidden_size": 4, "scale": 1.0, "size": 3, "k": 1, "starts": [0],
    "ends": [1], "repeats": [1], "shape": [1], "dtype": 1, "mode": "DCR", "num_outputs": 2, "min": 0.0, "max": 1.0,
    "activation": "Relu", "direction": "LEFT", "max_k": 1, "channels_last": 1, "normalization_size": 4,
}  # fmt: skip
_OPTIONAL = defs.OpSchema.FormalParameterOption.Optional


class Asked(Struct):
    """An operator at one version. ``inputs`` and ``outputs`` are type parameters, ``opset`` is the model's."""

    op: str
    domain: str
    since: int
    opset: int
    inputs: list[str]
    outputs: list[str]
    types: dict[str, list[str]]
    attributes: dict[str, Any]
    needed: int
    results: int
    optional: frozenset[int]


def made_session(model: ModelProto, options: Mapping[str, str]) -> tuple[str, str]:
    """The log of ONNX Runtime while it makes a session, and the reason why it makes none."""
    settings, providers = settings_of(options, level="none")
    error = ""
    with Log() as log:
        try:
            onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=providers)
        except Exception as raised:  # onnxruntime's exceptions have no common base class
            error = str(raised)
    return log.text, error


# --- schemas


def versions() -> Iterator[Asked]:
    """Every version of every operator that a model of opset 7 or newer can have."""
    schemas = [s for s in defs.get_all_schemas_with_history() if s.domain == "" and not s.deprecated]
    since = {(s.name, s.since_version) for s in schemas}
    for schema in sorted(schemas, key=lambda s: (s.name, s.since_version)):
        later = [number for name, number in since if name == schema.name and number > schema.since_version]
        last, opset = min([*later, LAST + 1]) - 1, max(schema.since_version, FIRST)
        if schema.name not in LEFT_OUT and opset <= last:
            yield _of_onnx(schema, opset)


def _of_onnx(schema: Any, opset: int) -> Asked:
    types = {c.type_param_str: [t for t in TYPES if t in c.allowed_type_strs] for c in schema.type_constraints}
    attributes = {a.name: REQUIRED.get(a.name) for a in schema.attributes.values() if a.required}
    if schema.name in ("LSTM", "GRU", "RNN"):
        attributes["hidden_size"] = 4
    optional = frozenset(index for index, i in enumerate(schema.inputs) if i.option == _OPTIONAL)
    inputs, outputs = ([p.type_str for p in side] for side in (schema.inputs, schema.outputs))
    results = max(sum(o.option != _OPTIONAL for o in schema.outputs), 1 + (schema.name == "Split"))
    return Asked(
        schema.name,
        "",
        schema.since_version,
        opset,
        inputs,
        outputs,
        types,
        attributes,
        schema.min_input,
        results,
        optional,
    )


def of_microsoft() -> Iterator[Asked]:
    """The operators of ``com.microsoft``, and those that ONNX Runtime adds to ONNX's, by its own schemas."""
    known = {s.name for s in defs.get_all_schemas()}
    found = [s for s in binding.get_all_operator_schema() if s.domain == MICROSOFT or s.name in _OWN - known]
    for schema in sorted(found, key=lambda s: s.name):
        types = {c.type_param_str: [t for t in TYPES if t in c.allowed_type_strs] for c in schema.type_constraints}
        attributes = {name: _required(name, a) for name, a in schema.attributes.items() if a.required}
        inputs, outputs = ([p.typeStr for p in side] for side in (schema.inputs, schema.outputs))
        optional = frozenset(index for index, i in enumerate(schema.inputs) if "Optional" in str(i.option))
        counts = max(schema.min_input, 1), max(schema.min_output, 1)
        if None not in attributes.values():
            yield Asked(schema.name, schema.domain, 1, 17, inputs, outputs, types, attributes, *counts, optional)


def _required(name: str, attribute: Any) -> Any:
    kind = str(attribute.type).rpartition(".")[2]
    return REQUIRED.get(name, {"INT": 1, "FLOAT": 1.0, "STRING": "NONE", "INTS": [1], "FLOATS": [1.0]}.get(kind))


# --- one question


def node_model(asked: Asked, chosen: Mapping[str, str], on_device: int | None = None, **more: Any) -> ModelProto | None:
    """A model of the node, without shapes. ``chosen`` are the types by parameter; operand ``on_device`` is written by
    a node before it on the device. None where an operand is of no tensor type."""
    inputs, names, nodes = [], [], []
    for index, letter in enumerate(asked.inputs):
        text = chosen.get(letter, letter)
        if index >= max(asked.needed, 0 if on_device is None else on_device + 1):
            break
        if index in asked.optional and index != on_device:
            names.append("")
            continue
        if text not in TYPES:
            return None
        names.append(f"i{index}")
        if index == on_device:
            inputs.append(helper.make_tensor_value_info("before", 1, None))
            nodes.append(helper.make_node("Cast", ["before"], [names[-1]], to=TYPES[text][1], name="before"))
        else:
            inputs.append(helper.make_tensor_value_info(names[-1], TYPES[text][1], None))
    results = [f"o{index}" for index in range(asked.results)]
    attributes = {**asked.attributes, **more}
    nodes.append(helper.make_node(asked.op, names, results, domain=asked.domain, name="the", **attributes))
    values = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph(nodes, "g", inputs, values)
    opsets = [helper.make_opsetid("", asked.opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def has_kernel(asked: Asked, chosen: Mapping[str, str], options: Mapping[str, str], **more: Any) -> bool:
    """True if ONNX Runtime finds a kernel of the provider for the node."""
    model = node_model(asked, chosen, **more)
    if model is None:
        return False
    log, error = made_session(model, options)
    missing = re.findall(r"kernel not found in registries for Op type: (\S+)", log)
    return not missing and "Initializing session" in log and not re.search("INVALID_GRAPH|Type Error", error)


def kernel_of(asked: Asked) -> dict[str, Any] | None:
    """The row of a kernel, None where there is none. ``int64`` are the type parameters that are i64 too with the
    provider's option enableInt64."""
    used = [name for name in asked.types if name in asked.inputs]
    if any(not asked.types[name] for name in used):
        return None
    base = {name: asked.types[name][0] for name in used}
    if "tensor(int64)" in asked.types.get("Tind", ()):
        base["Tind"] = "tensor(int64)"
    if not has_kernel(asked, base, {}) and not any(
        has_kernel(asked, {**base, n: t}, {}) for n in used[:1] for t in asked.types[n][1:]
    ):
        return None
    types, wide = {}, []
    for name in used:
        found = [t for t in asked.types[name] if has_kernel(asked, {**base, name: t}, {})]
        types[name] = " ".join(sorted(TYPES[t][0] for t in found))
        option = {**base, name: "tensor(int64)"}
        if (
            option[name] in asked.types[name]
            and option[name] not in found
            and has_kernel(asked, option, {"enableInt64": "1"})
        ):
            wide.append(name)
    if asked.op == "Cast":
        found = [t for t in asked.types["T2"] if has_kernel(asked, base, {}, to=TYPES[t][1])]
        types["T2"] = " ".join(sorted(TYPES[t][0] for t in found))
    return {"since": asked.since, "types": types, **({"int64": wide} if wide else {})}


def host_operands(asked: Asked, kernel: Mapping[str, Any]) -> list[int]:
    """The operands that the kernel reads on the CPU: ONNX Runtime adds a copy before it."""
    names = {name: text for text, (name, _) in TYPES.items()}
    chosen = {letter: names[text.split()[0]] for letter, text in kernel["types"].items() if text}
    chosen |= {letter: asked.types[letter][0] for letter in asked.types if letter not in chosen and asked.types[letter]}
    if "i64" in kernel["types"].get("Tind", "").split():
        chosen["Tind"] = "tensor(int64)"
    out = []
    for index, letter in enumerate(asked.inputs):
        text = chosen.get(letter, letter)
        if text not in TYPES or TYPES[text][0] not in ("f32", "f16", "i32", "i64", "u32", "bool"):
            continue
        model = node_model(asked, chosen, index)
        log = "" if model is None else made_session(model, {})[0]
        if f"Add MemcpyToHost before i{index} " in log:
            out.append(index)
    return out


# --- the table


def in_process_of_its_own(function: Any, *arguments: Any) -> Any:
    """The answer of a function; None where the process ends: some constructors do that."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.write(write, json.dumps(function(*arguments)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def rows() -> list[dict[str, Any]]:
    """The rows of the table, ONNX's operators first."""
    asked: dict[tuple[str, str], list[Asked]] = {}
    for each in (*versions(), *of_microsoft()):
        asked.setdefault((each.domain, each.op), []).append(each)
    of_onnx = [group for (domain, _), group in sorted(asked.items()) if not domain]
    found = in_process_of_its_own(lambda: [row_of(group) for group in of_onnx])
    found += [in_process_of_its_own(row_of, group) for (domain, _), group in sorted(asked.items()) if domain]
    conditional = {**_IF, "kernels": [{"since": 1, "types": {"B": "bool"}}]}
    return sorted((row for row in [*found, conditional] if row), key=lambda row: (row.get("domain", ""), row["op"]))


def row_of(group: Sequence[Asked]) -> dict[str, Any] | None:
    """The row of an operator; None where no version of it has a kernel."""
    pairs = [(asked, kernel) for asked in group for kernel in [kernel_of(asked)] if kernel is not None]
    if not pairs:
        return None
    newest, kernel = next((p for p in reversed(pairs) if p[0].opset <= _USUAL), pairs[-1])
    host = host_operands(newest, kernel)
    row: dict[str, Any] = {"op": newest.op, **({"domain": newest.domain} if newest.domain else {})}
    if not newest.domain:
        first = FIRST if newest.op in _OWN else None
        row["opsets"] = _ranges([(first or asked.opset, _last(asked)) for asked, _ in pairs])
    row |= {"inputs": _letters(newest.inputs), "outputs": _letters(newest.outputs)}
    row |= {"host_operands": host} if host else {}
    row |= {"host_results": _HOST_RESULTS[newest.op]} if newest.op in _HOST_RESULTS else {}
    return {**row, "kernels": [kernel for _, kernel in reversed(pairs)]}


def _letters(texts: Sequence[str]) -> list[str]:
    return [TYPES[text][0] if text in TYPES else text for text in texts]


def _last(asked: Asked) -> int:
    """The last opset at which the version of an operator is used."""
    schemas = defs.get_all_schemas_with_history()
    later: list[int] = [s.since_version for s in schemas if s.name == asked.op and s.domain == ""]
    return min([v for v in later if v > asked.since] + [LAST + 1]) - 1


def _ranges(pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    out: list[list[int]] = []
    for first, last in sorted(pairs):
        if out and out[-1][1] + 1 == first:
            out[-1][1] = last
        else:
            out.append([first, last])
    return out


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.webgpu_kernels", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the rows of the table anew")
    writes = parser.parse_args().write
    old = json.loads(FILE.read_text(encoding="utf-8"))
    package = f"onnxruntime-ep-webgpu {version('onnxruntime-ep-webgpu')}"
    new = {
        **old,
        "source": f"{package} with onnxruntime {onnxruntime.__version__}, asked by python -m tools.webgpu_kernels",
        "cite": package,
        "known_opsets": [FIRST, LAST],
        "rows": rows(),
    }
    if writes:
        FILE.write_text(json_text(new), encoding="utf-8")
        return 0
    is_current = bool(new["rows"] == old["rows"])
    print("current" if is_current else "not current: python -m tools.webgpu_kernels --write")
    return 0 if is_current else 1


def json_text(data: Mapping[str, Any]) -> str:
    """The document, a row on each line."""
    parts = []
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            body = ",\n    ".join(json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f"  {json.dumps(key)}: [\n    {body}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
