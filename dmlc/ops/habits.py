"""Operations under the names that NumPy and PyTorch give them: what to write instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import attribute_specs

#: Modules whose functions users write.
MODULES = frozenset(("np", "numpy", "torch", "tf", "jnp", "math", "F", "nn", "op", "onnx_op"))
_REDUCTIONS = {
    "sum": "reduce_sum", "mean": "reduce_mean", "average": "reduce_mean", "prod": "reduce_prod", "max": "reduce_max",
    "min": "reduce_min", "amax": "reduce_max", "amin": "reduce_min", "any": "reduce_max", "all": "reduce_min",
    "norm": "reduce_l2", "logsumexp": "reduce_log_sum_exp",
}  # fmt: skip
_OTHERS = {
    "dot": "matmul", "gemm": "matmul", "mm": "matmul", "bmm": "matmul", "permute": "transpose", "select": "where",
    "arange": "iota", "range": "iota", "fill": "full", "topk": "top_k", "cat": "concat", "concatenate": "concat",
    "view": "reshape", "absolute": "abs", "maximum": "max", "minimum": "min", "power": "pow", "isnan": "is_nan",
    "isinf": "is_inf", "negative": "neg", "rint": "round", "take": "gather", "astype": "cast", "type": "cast",
    "take_along_axis": "gather_elements", "expand_dims": "unsqueeze", "broadcast_to": "expand", "clamp": "clip",
}  # fmt: skip
_AXIS = ("axis", "axes", "dim")


def operation_named(name: str) -> str:
    """The operation that another library calls ``name``; empty for a name that none does."""
    if name in ("any", "all") and f"reduce_{name}" in OPERATIONS:
        return f"reduce_{name}"
    return _REDUCTIONS.get(name) or _OTHERS.get(name) or (name if name in OPERATIONS else "")


def call_instead(name: str, operands: Sequence[str], keywords: Mapping[str, str]) -> str:
    """The call to write for one of another library, as text; empty for a name that is not known.

    ``operands`` and ``keywords`` are texts; the first operand is the tensor of a method.
    """
    op = operation_named(name)
    if not op or not operands:
        return f"{op}(...)" if op else ""
    first, rest = operands[0], list(operands[1:])
    if name in ("astype", "type") and rest:
        return f"{first} as {rest[0]}"
    axis = next((keywords[key] for key in _AXIS if key in keywords), None)
    kept = {key: text for key, text in keywords.items() if key not in _AXIS}
    if op in _REDUCTIONS.values() or op in ("reduce_any", "reduce_all"):
        axis = rest[0] if axis is None and rest else axis
        parts = [first, *([f"axes={_listed(axis)}"] if axis is not None else [])]
        parts += ["keepdims=false"] if kept.get("keepdims", kept.get("keepdim")) in ("False", "false") else []
        return f"{op}({', '.join(parts)})"
    declared = OPERATIONS[op]
    names = [spec.name for spec in attribute_specs(declared.attributes)]
    if axis is not None:
        kept = {("axes" if "axes" in names else "axis"): _listed(axis) if "axes" in names else axis, **kept}
    taken = len(declared.operands)
    if declared.operands and declared.operands[-1].variadic:
        taken = len(operands)
    extra = [text for text in operands[taken:] if text]
    if extra and names:
        given = f"[{', '.join(extra)}]" if len(extra) > 1 else extra[0]
        kept = {names[0]: given.replace("(", "[").replace(")", "]"), **kept}
    parts = [*operands[:taken], *[f"{key}={text}" for key, text in kept.items() if key in names]]
    return f"{op}({', '.join(parts)})"


def attribute_instead(name: str, x: str) -> str:
    """The text to write for an attribute of another library's tensors, such as ``x.T``; empty for another name."""
    found = {
        "T": f"transpose({x})", "mT": f"transpose({x})", "shape": f"size({x}, axis=0)", "size": f"size({x})",
        "ndim": "the rank, which is known from the type", "dtype": f"like={x} where a dtype is wanted",
    }.get(name)  # fmt: skip
    return found or call_instead(name, [x], {})


def _listed(axis: str) -> str:
    """An axis or a tuple of axes as a list."""
    inner = axis.strip()
    if inner[:1] in "([" and inner[-1:] in ")]":
        inner = inner[1:-1].strip().rstrip(",")
    return f"[{inner}]"


__all__ = ["MODULES", "attribute_instead", "call_instead", "operation_named"]
