"""Walk a model node by node with the rules: the simplest client, without an importer around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from onnx import NodeProto

from dmlc.inference import Fact, Query, infer
from dmlc.inference.fact import of_array
from dmlc.inference.protos import asked_attributes
from dmlc.ir import Dim, DimTable, symbol

#: Constants and inputs up to this size are known with their elements.
KNOWN = 64


def new_dims() -> Callable[[], Dim]:
    count = iter(range(10**9))
    return lambda: symbol(f"new_{next(count)}")


def walk(
    nodes: Iterable[NodeProto], facts: dict[str, Fact], opsets: Mapping[str, int], dims: DimTable
) -> dict[str, Fact]:
    """Add the facts about all results."""
    new_dim = new_dims()
    for node in nodes:
        domain = "" if node.domain == "ai.onnx" else node.domain
        query = Query(
            node.op_type,
            [facts.get(name, Fact()) if name else None for name in node.input],
            opset=opsets.get(domain, 1),
            results=len(node.output),
            domain=domain,
            attributes=asked_attributes(node.attribute),
            dims=dims,
            new_dim=new_dim,
        )
        facts.update({name: fact for name, fact in zip(node.output, infer(query), strict=True) if name})
    return facts


def of_data(element: int, array: Any, *, known: bool = True) -> Fact:
    data = np.asarray(array)
    if known and data.size <= KNOWN and data.dtype.kind in "iubf":
        return of_array(element, data)
    return Fact(element, data.shape)
