"""The files of a bundle that reproduces a fault on another machine."""

from __future__ import annotations

import io
import platform
import tempfile
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto

from dmlc import __version__
from dmlc.codegen import dxdispatch
from dmlc.debugging.checks import case_arrays
from dmlc.debugging.node_pairs import label_of
from dmlc.debugging.repro_runner import runner_text
from dmlc.debugging.source_insides import CompileOptions
from dmlc.diagnostics import DmlcError
from dmlc.onnx_schema.domains import operator_of
from dmlc.onnx_schema.nested import graphs_of, holds_graphs
from dmlc.onnx_schema.types import element_name
from dmlc.runtime import dxdispatch_files, files
from dmlc.runtime.distributions import runtime_distributions
from dmlc.verifying.onnx_interface import is_exotic
from dmlc.verifying.tolerance import TOLERANCES, Tolerance
from dmlc.verifying.worst import worst_element

_DISPATCHES = "fault.dxdispatch.json"


@dataclass(frozen=True, slots=False)
class ReproBundle:
    """Files that show a fault: ``model.onnx``, ``case.npz``, ``run.py``, ``report.md`` and others.

    ``compiled`` is the model that dmlc made of ``model``, if that is where the fault is: then ``model.onnx`` is the
    compiled one and ``source.onnx`` the one before.
    """

    model: ModelProto
    right: ModelProto | None
    compiled: ModelProto | None
    feeds: Mapping[str, Any]
    expected: Mapping[str, Any]
    actual: Mapping[str, Any]
    details: tuple[str, ...]
    original: tuple[str, ...]
    backend: str | None
    tolerance: Tolerance | None
    options: CompileOptions

    @property
    def notes(self) -> tuple[str, ...]:
        """Parts of the bundle that are missing, with the reason."""
        found = self._dispatches
        out = [f"no JSON for DxDispatch: {found}"] if isinstance(found, str) else []
        arrays = case_arrays(self.feeds, self.expected)
        if len(arrays) < len(self.feeds) + len(self.expected):
            out.append("case.npz has tensors only; sequences are missing")
        return tuple(out)

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The files by name."""
        arrays = case_arrays(self.feeds, self.expected)
        arrays |= {f"actual::{name}": x for name, x in self.actual.items() if isinstance(x, np.ndarray | np.generic)}
        provider = self.backend if self.backend in ("dml", "webgpu") else "cpu"
        out = {
            "model.onnx": self._bytes(self.model if self.compiled is None else self.compiled),
            "case.npz": files.npz_bytes(arrays),
            "run.py": runner_text(provider, _factors(self.tolerance)).encode(),
            "report.md": self._report().encode(),
        }
        if self.compiled is not None:
            out["source.onnx"] = self._bytes(self.model)
        if self.right is not None:
            out["right.onnx"] = self._bytes(self.right)
        if not isinstance(self._dispatches, str):
            out |= self._dispatches
        return dict(sorted(out.items()))

    def _bytes(self, model: ModelProto) -> bytes:
        """The model with inputs and outputs that NumPy can hold: others are cast where they come in and go out."""
        out = ModelProto()
        out.CopyFrom(model)
        first, last = [], []
        for info in out.graph.input:
            kind = info.type.tensor_type.elem_type
            if is_exotic(kind) and info.name in self.feeds:
                info.type.tensor_type.elem_type = onnx.helper.np_dtype_to_tensor_dtype(self.feeds[info.name].dtype)
                first.append(onnx.helper.make_node("Cast", [info.name], [f"{info.name}//cast"], to=kind))
        for info in out.graph.output:
            kind = info.type.tensor_type.elem_type
            if is_exotic(kind):
                is_integer = "int" in element_name(kind)
                wide = onnx.TensorProto.INT8 if is_integer else onnx.TensorProto.FLOAT
                info.type.tensor_type.elem_type = wide
                last.append(onnx.helper.make_node("Cast", [f"{info.name}//cast"], [info.name], to=wide))
        if first or last:
            _rename(out.graph, {node.input[0] for node in first}, {node.output[0] for node in last})
            nodes = [*first, *out.graph.node, *last]
            del out.graph.node[:], out.graph.value_info[:]
            out.graph.node.extend(nodes)
        return bytes(out.SerializeToString(deterministic=True))

    def to_bytes(self) -> bytes:
        """The zip archive."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, data in self.files.items():
                entry = zipfile.ZipInfo(name, files.EPOCH)
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(entry, data)
        return buffer.getvalue()

    @cached_property
    def _dispatches(self) -> dict[str, bytes] | str:
        """The JSON for DxDispatch and its data, or the reason why there is none."""
        try:
            program = self.options.program(self.model, as_written=True, target="directml")
            with tempfile.TemporaryDirectory(prefix="dmlc-", ignore_cleanup_errors=True) as folder:
                path = Path(folder) / "dxdispatch" / _DISPATCHES
                names = dxdispatch.input_files(program.signature, dxdispatch_files.folder_of(path))
                for name, file in names.items():
                    data = np.ascontiguousarray(self.feeds[name])
                    (path.parent / file).parent.mkdir(parents=True, exist_ok=True)
                    np.save(path.parent / file, data.view(np.uint8) if data.dtype.kind == "b" else data)
                path.parent.mkdir(exist_ok=True)
                program.save(path)
                found = sorted(file for file in path.parent.rglob("*") if file.is_file())
                return {file.relative_to(folder).as_posix(): file.read_bytes() for file in found}
        except DmlcError as error:
            return error.diagnostics[0].message
        except (KeyError, TypeError, ValueError) as error:  # an input that is not an array
            return f"{type(error).__name__}: {error}"

    # --- the report

    def _report(self) -> str:
        nodes = [node for node in self.model.graph.node if node.op_type != "Constant"]
        names = " + ".join(dict.fromkeys(operator_of(node) for node in nodes))
        opsets = ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in self.model.opset_import)
        out = [f"# Wrong result of {names}", "", f"Opset {opsets}. The model:", "", "```"]
        out += map(_line, nodes)
        out += ["```", "", "| | dtype | shape |", "| --- | --- | --- |"]
        for role, arrays in (("input", self.feeds), ("output", self.expected)):
            for name, array in arrays.items():
                kind = str(getattr(array, "dtype", type(array).__name__))
                out.append(f"| {role} `{name}` | {kind} | {list(np.shape(array))} |")
        out += ["", "Expected and found:", "", *self._differences(), ""]
        out += ["To see it again: `python run.py` in the folder of these files (needs numpy and onnxruntime; "]
        out[-1] += "`--provider dml` for DirectML). It prints the versions of everything installed."
        if self.compiled is not None:
            out.append("`model.onnx` is what dmlc compiles `source.onnx` to.")
        if self.right is not None:
            out.append("`right.onnx` is the model that gives the expected results.")
        kept = ", ".join(f"`{name}`" for name in self.original)
        out += ["", f"Numbers that are not seeded: {kept or 'none'}.", "", "Found with:", "", *_versions(), ""]
        return "\n".join(out)

    def _differences(self) -> list[str]:
        out = []
        for name, array in self.expected.items():
            found = self.actual.get(name)
            if not isinstance(found, np.ndarray) or not isinstance(array, np.ndarray):
                continue
            if (array.shape, array.dtype) == (found.shape, found.dtype) and array.dtype.kind not in "OUS":
                out.append(f"- `{name}`: {worst_element(array, found) or 'equal'}")
        return out or [f"- {line}" for line in self.details] or ["- a command decided that the model is wrong"]


def _line(node: NodeProto) -> str:
    """A node as a call, with its attributes."""
    parts = [onnx.helper.printable_attribute(entry) for entry in node.attribute if not holds_graphs(entry)]
    call = f"{operator_of(node)}({', '.join([*node.input, *parts])})"
    return f"{', '.join(node.output)} = {call}  # {label_of(node)}"


def _factors(tolerance: Tolerance | None) -> dict[str, list[float]]:
    kinds = ("float16", "float32", "float64")
    found = {kind: TOLERANCES[kind] if tolerance is None else tolerance for kind in kinds}
    return {kind: [each.relative, each.scaled, each.least] for kind, each in found.items()}


def _versions() -> list[str]:
    runtimes = ", ".join(f"{each.title}{' (imported)' if each.imported else ''}" for each in runtime_distributions())
    return [
        f"- dmlc {__version__}, onnx {onnx.__version__}, numpy {np.__version__}",
        f"- Python {platform.python_version()}, {platform.platform()}",
        f"- {runtimes or 'no distribution of ONNX Runtime'}",
    ]


def _rename(graph: GraphProto, inputs: Collection[str], outputs: Collection[str]) -> None:
    """Give inputs and outputs inside the graph, and inside graphs of its nodes, the names behind and before casts."""
    both = {*inputs, *outputs}
    for node in graph.node:
        node.input[:] = [f"{name}//cast" if name in both else name for name in node.input]
        node.output[:] = [f"{name}//cast" if name in outputs else name for name in node.output]
        for inner in graphs_of(node):
            _rename(inner, inputs, outputs)
