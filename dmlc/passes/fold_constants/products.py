"""Sums of products of constants: Conv and Einsum, floats in f64 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from dmlc.ir import Array, Node
from dmlc.ops.opaque import attribute_of

#: Multiplications, at most.
_MOST_PRODUCTS = 1 << 26


def convolved(node: Node, arrays: Sequence[Any]) -> Array:
    """The result of a Conv; raises ``ValueError`` where it is not followed."""
    x, w, bias = arrays[0], arrays[1], arrays[2] if len(arrays) > 2 else None
    rank, kernel = x.ndim - 2, w.shape[2:]
    group = attribute_of(node, "group", 1)
    strides, dilations = (attribute_of(node, name, (1,) * rank) for name in ("strides", "dilations"))
    mode, pads = attribute_of(node, "auto_pad", "NOTSET"), attribute_of(node, "pads", (0,) * 2 * rank)
    if mode not in ("NOTSET", "VALID") or min(pads, default=0) < 0:
        raise ValueError("pads that are not followed")
    if mode == "VALID":
        pads = (0,) * 2 * rank
    around = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(x.astype(np.float64), around)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [(n - r) // s + 1 for n, r, s in zip(padded.shape[2:], reach, strides, strict=True)]
    if min((*sizes, *kernel), default=1) < 1 or prod((*sizes, x.shape[0], *w.shape)) > _MOST_PRODUCTS:
        raise ValueError("no window, or too many products")
    padded = padded.reshape(x.shape[0], group, x.shape[1] // group, *padded.shape[2:])
    weights = w.astype(np.float64).reshape(group, w.shape[0] // group, *w.shape[1:])
    out = np.zeros((x.shape[0], *weights.shape[:2], *sizes))
    for place in np.ndindex(*kernel):
        steps = zip(place, dilations, sizes, strides, strict=True)
        window: Any = (Ellipsis, *[slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, n, s in steps])
        at: Any = (Ellipsis, *place)
        out += np.einsum("ngc...,gmc->ngm...", padded[window], weights[at])
    out = out.reshape(x.shape[0], w.shape[0], *sizes)
    if bias is not None:
        out += bias.reshape(-1, *[1] * rank)
    return out.astype(x.dtype)


def summed(node: Node, arrays: Sequence[Any]) -> Array:
    """The result of an Einsum; raises ``ValueError`` where it is not followed."""
    equation = attribute_of(node, "equation").replace(" ", "")
    if "." in equation:
        raise ValueError("axes without a letter are not followed")
    sizes = {
        letter: size
        for term, array in zip(equation.split("->")[0].split(","), arrays, strict=True)
        for letter, size in zip(term, array.shape, strict=True)
    }
    if prod(sizes.values()) > _MOST_PRODUCTS:
        raise ValueError("too many products")
    home = np.float64 if arrays[0].dtype.kind == "f" else arrays[0].dtype
    out: Array = np.asarray(np.einsum(equation, *[array.astype(home) for array in arrays]))
    return out.astype(arrays[0].dtype)
