"""Types of the results of a node that no rule knows: what ONNX's inference of this node alone claims of them."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from functools import lru_cache

from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto, defs

from dmlc.onnx_schema.domains import plain_domain
from dmlc.workers import Worker, WorkerEnded

#: Seconds that the inference of one node may take, the start of the process with it.
TIME_LIMIT = 60.0
#: After so many ends of the process nothing is asked any more.
_MOST_ENDS = 3

_WORKER = Worker("dmlc.inference.node_worker")
_ENDS: list[WorkerEnded] = []
atexit.register(_WORKER.stop)


def claimed_types(
    node: NodeProto, operands: Sequence[TypeProto | None], versions: Mapping[str, int]
) -> list[TypeProto | None]:
    """The types of a node's results, None for each that is not known.

    Operators that the installed onnx does not know are not asked about, nor are nodes that hold graphs or refer to
    files. The process may end or run into its limits: then nothing is known.
    """
    nothing: list[TypeProto | None] = [None] * len(node.output)
    domain = plain_domain(node.domain)
    version = versions.get(domain, 0)
    if not 0 < version < 2**31 or not defs.has(node.op_type, version, domain):
        return nothing
    plain = NodeProto(op_type=node.op_type, domain=domain, attribute=node.attribute)
    plain.input.extend([f"i{i}" if type is not None else "" for i, type in enumerate(operands)])
    plain.output.extend([f"o{i}" for i in range(len(node.output))])
    graph = GraphProto(name="one_node", node=[plain])
    graph.input.extend([ValueInfoProto(name=f"i{i}", type=type) for i, type in enumerate(operands) if type is not None])
    model = ModelProto(ir_version=8, graph=graph)
    model.opset_import.add(domain=domain, version=version)
    answer = _asked(model.SerializeToString(deterministic=True))
    if answer is None:
        return nothing
    found = {info.name: info.type for info in ModelProto.FromString(answer).graph.value_info}
    return [found.get(f"o{i}") for i in range(len(node.output))]


@lru_cache(maxsize=1024)
def _asked(model: bytes) -> bytes | None:
    if len(_ENDS) >= _MOST_ENDS:
        return None
    try:
        if not _WORKER.is_running:
            _WORKER.spawn()
        answer = _WORKER.exchange(TIME_LIMIT, model)
    except WorkerEnded as error:
        _ENDS.append(error)
        return None
    except OSError:
        return None
    return answer if isinstance(answer, bytes) else None
