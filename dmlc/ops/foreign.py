"""Operations under the names that NumPy and PyTorch give them: what to write instead."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dmlc.ir import DTYPE_BY_NAME, DTYPES
from dmlc.ops import INFIX, OPERATIONS
from dmlc.ops.attributes import ATTRIBUTE_SPELLINGS, AttributeSpec, AxesKind, DimsKind, IntsKind, attribute_specs

#: The help for ``None`` and ``np.newaxis`` in an index.
NEW_AXIS = "a new axis is made by unsqueeze(x, axes=[K]), where K is its place in the result"
#: The help for ``x ^ 2`` of floats.
POWER = "^ is exclusive or; a power is written x ** 2"
#: The help for a method that no operation stands for.
NO_METHODS = "operations are called with operands, such as exp(x); dmlc ops lists them"
#: Operations that take sizes in PyTorch where they take a scale here, and what is said of that.
NORMS = ("layer_norm", "rms_norm")
NOT_SIZES = "the second operand of {} is a scale, not the sizes to normalize over"
#: Modules whose functions users write.
MODULES = frozenset(("np", "numpy", "torch", "tf", "jnp", "math", "F", "nn", "op", "onnx_op"))
_REDUCTIONS = {
    "sum": "reduce_sum", "mean": "reduce_mean", "average": "reduce_mean", "prod": "reduce_prod", "max": "reduce_max",
    "min": "reduce_min", "amax": "reduce_max", "amin": "reduce_min", "any": "reduce_max", "all": "reduce_min",
    "norm": "reduce_l2", "logsumexp": "reduce_log_sum_exp",
}  # fmt: skip
_OTHERS = {
    "dot": "matmul", "gemm": "matmul", "mm": "matmul", "bmm": "matmul", "permute": "transpose", "swapaxes": "transpose",
    "select": "where",
    "arange": "iota", "range": "iota", "fill": "full", "topk": "top_k", "cat": "concat", "concatenate": "concat",
    "view": "reshape", "absolute": "abs", "maximum": "max", "minimum": "min", "power": "pow", "isnan": "is_nan",
    "isinf": "is_inf", "negative": "neg", "rint": "round", "take": "gather", "astype": "cast", "type": "cast",
    "take_along_axis": "gather_elements", "expand_dims": "unsqueeze", "broadcast_to": "expand", "clamp": "clip",
}  # fmt: skip
#: Operators that the language has only as ONNX's own, by the names that users write.
_ONNX_ONLY = {
    name: op
    for op, names in {
        "Conv": ("conv", "conv1d", "conv2d", "conv3d"), "MaxPool": ("maxpool", "max_pool", "max_pool1d", "max_pool2d"),
        "AveragePool": ("avgpool", "avg_pool", "avg_pool1d", "avg_pool2d"),
        "Resize": ("resize", "interpolate", "upsample"), "BatchNormalization": ("batch_norm", "batchnorm"),
        "Trilu": ("tril", "triu"),
    }.items()
    for name in (op, *names)
}  # fmt: skip
#: Arguments of PyTorch's convolutions and pools behind the tensors, in their order, by the attributes of ONNX.
_WINDOWS = {
    "Conv": {"stride": "strides", "padding": "pads", "dilation": "dilations", "groups": "group"},
    "MaxPool": {"kernel_size": "kernel_shape", "stride": "strides", "padding": "pads"},
    "AveragePool": {"kernel_size": "kernel_shape", "stride": "strides", "padding": "pads"},
}
#: Texts to write for functions that no single operation stands for. ``{0}`` is their first operand, ``{1}`` the same
#: in parentheses where an operator beside it would take a part of it.
_PHRASES = {
    "len": "size({0}, axis=0)", "zeros": "full(shape=[...], value=0, dtype=f32)",
    "ones": "full(shape=[...], value=1, dtype=f32)", "zeros_like": "full(shape=[...], value=0, like={0})",
    "ones_like": "full(shape=[...], value=1, like={0})", "full_like": "full(shape=[...], value=..., like={0})",
    "eye": "one_hot(iota(length=N, dtype=i32), depth=N)", "square": "{1} ** 2", "rsqrt": "reciprocal(sqrt({0}))",
    "log1p": "log({1} + 1)", "expm1": "exp({0}) - 1", "relu6": "clip({0}, min=0, max=6)", "swish": "silu({0})",
    "mish": "{1} * tanh(softplus({0}))", "hard_swish": "{1} * clip({1} / 6 + 0.5, min=0, max=1)",
    "hardswish": "{1} * clip({1} / 6 + 0.5, min=0, max=1)", "einsum": 'onnx.Einsum(..., equation="...")',
    "exp2": "2 ** {1}", "log2": f"log({{0}}) * {math.log2(math.e)!r}", "log10": f"log({{0}}) * {math.log10(math.e)!r}",
    "logical_not": "!{1}", "bitwise_not": "!{1}", "identity": "{0}", "copy": "{0}", "detach": "{0}",
    "contiguous": "{0}", "dropout": "{0}", "numel": "size({0})",
    "tril": "onnx.Trilu({0}, upper=0)", "triu": "onnx.Trilu({0}, upper=1)",
    "tan": "sin({0}) / cos({0})", "isfinite": "!(is_nan({0}) | is_inf({0}))", "trunc": "sign({0}) * floor(abs({0}))",
}  # fmt: skip
#: The signs of operators, by their own names and by the names of other libraries' functions.
SIGNS = {
    **{op.name: sign for sign, op in INFIX.items()},
    "power": "**", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/", "floor_divide": "//",
    "remainder": "%",
    "logical_and": "&", "bitwise_and": "&", "logical_or": "|", "bitwise_or": "|", "logical_xor": "^",
    "bitwise_xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
#: Functions that the standard library has under other names.
_BLOCKS = {"var": "variance", "std": "standard_deviation"}
#: Other languages' names of the dtypes.
_LONG_NAMES = {dtype.long_name: dtype.name for dtype in DTYPES}
_DTYPES = {
    **_LONG_NAMES,
    **{dtype.name: dtype.name for dtype in DTYPES},
    "half": "f16",
    "fp16": "f16",
    "fp32": "f32",
    "fp64": "f64",
    "float": "f32",
    "double": "f64",
    "int": "i32",
    "long": "i64",
    "byte": "u8",
    "boolean": "bool",
}
#: Numbers that other libraries give by a name of a module.
_NUMBERS = {"inf": "inf", "nan": "nan", "pi": repr(math.pi), "e": repr(math.e)}
#: Calls that mean the same for all operands. Others depend on the library (max of torch has two results, transpose of
#: torch swaps two axes) or differ in a default.
_SAME = frozenset((
    "sum", "mean", "prod", "amax", "amin", "any", "all", "logsumexp", "absolute", "maximum", "minimum", "power",
    "isnan", "isinf", "negative", "rint", "expand_dims", "clamp", "clip", "cat", "concatenate", "mm", "bmm", "view",
))  # fmt: skip


def dtype_named(name: str) -> str:
    """The dtype that another library calls ``name``; empty for a name that none does."""
    return _DTYPES.get(name.lower(), "")


def operation_named(name: str) -> str:
    """The operation that another library calls ``name``; empty for a name that none does."""
    if name in ("any", "all") and f"reduce_{name}" in OPERATIONS:
        return f"reduce_{name}"
    return _REDUCTIONS.get(name) or _OTHERS.get(name) or (name if name in OPERATIONS else "")


def _closed(text: str) -> str:
    """The expression in parentheses if an operator stands outside its brackets."""
    depth = 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if not depth and sign in "+-*/%|&^<>=! ":
            return f"({text})"
    return text


class Rewritten(Struct, frozen=True):
    """The call to write for one of another library, as text; empty where no call means it.

    ``help`` is what a message says of it; empty for a name that is not known. ``is_same`` is true if it keeps every
    argument and means the same for all operands.
    """

    text: str
    help: str
    is_same: bool = False


def instead_of(
    name: str, operands: Sequence[str], keywords: Mapping[str, str], *, is_foreign: bool = False
) -> Rewritten:
    """The call, operator, block or expression to write for a call of another library, as for ``call_instead``."""
    found = call_instead(name, operands, keywords, is_foreign=is_foreign)
    if found.text:
        return found
    if name in SIGNS:
        if len(operands) == 2:
            return _plain(f"{_closed(operands[0])} {SIGNS[name]} {_closed(operands[1])}")
        return Rewritten("", f"a {SIGNS[name]} b")
    if name in _BLOCKS and operands:
        axis = "".join(operands[1:2]) or keywords.get("axis", keywords.get("dim", ""))
        is_kept = keywords.get("keepdims", keywords.get("keepdim", "")).lower() == "true"
        rest = f"axes={_listed(axis) if axis else '[...]'}{'' if is_kept else ', keepdims=false'}"
        call = f"{_BLOCKS[name]}({operands[0]}, {rest})"
        return Rewritten(call if axis else "", call)
    if name == "linear" and len(operands) in (2, 3):
        bias = "".join([f" + {_closed(text)}" for text in operands[2:]])
        return _plain(f"matmul({operands[0]}, transpose({operands[1]}, perm=[1, 0])){bias}")
    if name == "normalize" and operands:
        return _normalize(operands, keywords)
    if name == "size" and operands:
        axis = "".join(operands[1:2]) or keywords.get("dim", "")
        return _plain(f"size({operands[0]}{f', axis={axis}' if axis else ''})")
    if name == "flatten" and operands:
        axis = "".join(operands[1:2]) or keywords.get("start_dim", "0")
        return _plain(
            f"reshape({operands[0]}, shape=[-1])" if axis == "0" else f"onnx.Flatten({operands[0]}, axis={axis})"
        )
    if name in _ONNX_ONLY and name not in _PHRASES:
        return _onnx_call(_ONNX_ONLY[name], name, operands, keywords)
    operand = operands[0] if operands else "x"
    phrase = _PHRASES.get(name, "").format(operand, _closed(operand))
    return Rewritten("" if "..." in phrase or not operands else phrase, phrase)


def _normalize(operands: Sequence[str], keywords: Mapping[str, str]) -> Rewritten:
    """The quotient for PyTorch's ``normalize(x, p=2.0, dim=1, eps=1e-12)``."""
    given = dict(zip(("p", "dim", "eps"), operands[1:], strict=False)) | dict(keywords)
    axis, epsilon = next((given[k] for k in ("dim", "axis", "axes") if k in given), "1"), given.get("eps", "1e-12")
    norms = {"1": "reduce_l1", "2": "reduce_l2"}
    norm = norms.get(given.get("p", "2").removesuffix(".0"))
    if norm is None:
        return Rewritten("", "x / max(norm of x, 1e-12), with the norm as reductions")
    return _plain(f"{_closed(operands[0])} / max({norm}({operands[0]}, axes={_listed(axis)}), {epsilon})")


def _onnx_call(op: str, name: str, operands: Sequence[str], keywords: Mapping[str, str]) -> Rewritten:
    """The call of an ONNX operator for a convolution or pool of PyTorch, or for ONNX's own name."""
    if name == op:
        return _plain(_call(f"onnx.{op}", operands, keywords))
    known = _WINDOWS.get(op)
    rank = int(name[-2]) if name[-2:] in ("1d", "2d", "3d") else 0
    taken = 3 if op == "Conv" else 1
    if known is None or not operands or len(operands) - taken > len(known) or not {*keywords} <= {*known, "bias"}:
        return Rewritten("", f"onnx.{op}, with the operands and attributes that ONNX gives it")
    tensors = [*operands[:taken], *([keywords["bias"]] if "bias" in keywords else [])]
    given = {**dict(zip(known, operands[taken:], strict=False)), **{k: v for k, v in keywords.items() if k != "bias"}}
    if "stride" not in given and "kernel_size" in given:
        given["stride"] = given["kernel_size"]
    attributes = {}
    for key, text in given.items():
        sizes = [part.strip() for part in _listed(text)[1:-1].split(",")]
        if not all(size.isdecimal() for size in sizes) or (len(sizes) == 1 and not rank and key != "groups"):
            return Rewritten("", f"onnx.{op}, with {known[key]} for {key}")
        whole = sizes * rank if len(sizes) == 1 else sizes
        attributes[known[key]] = sizes[0] if key == "groups" else f"[{', '.join(whole * (1 + (key == 'padding')))}]"
    if op == "AveragePool" and "pads" in attributes:
        attributes["count_include_pad"] = "1"
    return _plain(_call(f"onnx.{op}", tensors, attributes))


def call_instead(
    name: str, operands: Sequence[str], keywords: Mapping[str, str], *, is_foreign: bool = False
) -> Rewritten:
    """The call to write for one of another library.

    ``operands`` and ``keywords`` are texts; the first operand is the tensor of a method. A call that ``is_foreign``
    drops the axes that it reduces, as NumPy and PyTorch do; a call of the language keeps them.
    """
    if _is_cast(name, operands, keywords):
        dtype = operands[1].strip("\"'") if len(operands) == 2 else name
        known = dtype_named(dtype)
        return _plain(
            f"{_closed(operands[0])} as {known or dtype}", is_same=dtype in DTYPE_BY_NAME or dtype in _LONG_NAMES
        )
    op = operation_named(name)
    if not op or not operands:
        return _plain(f"{op}(...)" if op else "")
    if op in NORMS and (sizes := normalized_sizes(op, operands, keywords)):
        return _plain(_norm_over(op, operands, keywords, sizes))
    declared = OPERATIONS[op]
    specs = {spec.name: spec for spec in attribute_specs(declared.attributes)}
    is_variadic = bool(declared.operands) and declared.operands[-1].variadic
    is_listed = is_variadic and operands[0].startswith("[")  # as in NumPy and PyTorch
    if is_listed:
        operands = [operands[0][1:-1], *operands[1:]]
    taken = 1 if is_listed else len(operands) if is_variadic else len(declared.operands)
    kept, is_whole = _attributes(specs, list(operands[taken:]), keywords)
    if kept.get("keepdims") == "true" and is_foreign:
        del kept["keepdims"]
        is_foreign = False
    extra = operands[taken:]
    if op == "transpose" and list(extra) == ["0", "1"]:  # two axes change places, as in PyTorch: [0, 1] moves nothing
        kept["perm"] = "[1, 0]"
    if op == "split" and extra:  # a count or a size of parts elsewhere, and nothing gives the sizes here
        axis = kept["axis"] if "axis" in keywords else "".join(extra[1:2]) or "0"
        kept, is_whole = {"axis": axis, "sizes": "[...]"}, False
    is_same = is_whole and len(operands) >= taken and not any(text.startswith("[") for text in operands[:taken])
    is_same = is_same and not (is_listed and extra)
    if name not in _SAME:  # libraries differ in the order of operands, and in what a number by position says
        is_same = is_same and name == op and not (is_foreign and (extra or taken > 1))
    text = _call(op, operands[:taken], kept)
    if "keepdims" not in specs or "keepdims" in kept or not is_foreign:
        return _plain(text, is_same=is_same)
    return _plain(_call(op, operands[:taken], {**kept, "keepdims": "false"}), is_same=is_same)


def normalized_sizes(op: str, operands: Sequence[str], keywords: Mapping[str, str]) -> Sequence[str]:
    """The sizes that PyTorch's layer_norm and rms_norm take where a scale is given here; empty for another operand."""
    text = operands[1] if len(operands) > 1 else keywords.get("normalized_shape", "")
    is_listed = text[:1] in ("[", "(") and text[-1:] in ("]", ")")
    sizes = [part.strip() for part in _listed(text)[1:-1].split(",")]
    return sizes if is_listed or (re.fullmatch(r"\d+", text) and text not in ("0", "1")) else []


def _norm_over(op: str, operands: Sequence[str], keywords: Mapping[str, str], sizes: Sequence[str]) -> str:
    """The call that normalizes over as many last axes as there are sizes, with the scale and bias if they are given."""
    epsilon = keywords.get("eps", keywords.get("epsilon", ""))
    tensors = [*operands[2:], *[keywords[key] for key in ("weight", "bias") if key in keywords]]
    kept = {"epsilon": epsilon} if epsilon else {}
    if tensors:
        return _call(op, [operands[0], *tensors], {**({"axis": f"-{len(sizes)}"} if len(sizes) > 1 else {}), **kept})
    axes = f"[{', '.join([str(axis) for axis in range(-len(sizes), 0)])}]"
    if op == "layer_norm":
        return _call("mean_variance_norm", operands[:1], {"axes": axes, **kept})
    x = _closed(operands[0])
    return f"{x} / sqrt(reduce_mean({x} * {x}, axes={axes}) + {epsilon or '1e-5'})"


def _is_cast(name: str, operands: Sequence[str], keywords: Mapping[str, str]) -> bool:
    """True for ``x.astype(f16)``, ``x.to(f16)``, ``x.half()`` and ``np.float32(x)``."""
    if keywords or len(operands) not in (1, 2):
        return False
    if len(operands) == 1:
        return bool(dtype_named(name)) and name not in OPERATIONS
    return name in ("astype", "type") or (name == "to" and bool(dtype_named(operands[1].strip("\"'"))))


def _plain(text: str, *, is_same: bool = False) -> Rewritten:
    return Rewritten(text, text, is_same)


def _call(op: str, operands: Sequence[str], attributes: Mapping[str, str]) -> str:
    return f"{op}({', '.join([*operands, *[f'{key}={text}' for key, text in attributes.items()]])})"


def _attributes(
    specs: Mapping[str, AttributeSpec], extra: list[str], keywords: Mapping[str, str]
) -> tuple[dict[str, str], bool]:
    """The attributes for what another library gives by position and by name, and whether all of it has a place."""
    axes = next((name for name in ("axes", "axis") if name in specs), None)
    out: dict[str, str] = {}
    is_whole = True
    for key, text in keywords.items():
        known = next((name for name in specs if key == name or key in ATTRIBUTE_SPELLINGS.get(name, ())), None)
        if known is None or known in out:
            is_whole = False
            continue
        text = {"True": "true", "False": "false"}.get(text, text)
        if known == axes and text in ("None", "none"):
            continue
        out[known] = _listed(text) if known == "axes" else text
    names = [name for name in specs if name not in out]
    needed = [name for name in names if specs[name].required]
    first = needed or ([axes] if axes is not None and axes in names else names)
    names = [*first, *[name for name in names if name not in first]]
    if extra and names:
        kind = specs[names[0]].kind
        if isinstance(kind, (AxesKind, IntsKind, DimsKind)) and (len(extra) == 1 or not extra[0].startswith("[")):
            is_whole = is_whole and (len(extra) == 1 or not isinstance(kind, AxesKind))
            out = {names[0]: _listed(", ".join(extra)), **out}
        else:
            is_whole = is_whole and len(extra) <= len(names)
            out = {**dict(zip(names, extra, strict=False)), **out}
        is_whole = is_whole and names[0] in first
    return out, is_whole and not (extra and not names)


def attribute_instead(name: str, x: str) -> str:
    """The text to write for an attribute of another library's tensors, such as ``x.T``, or of its module, such as
    ``np.inf``; empty for another name."""
    if x in MODULES:
        return _NUMBERS.get(name) or dtype_named(name)
    found = {
        "T": f"transpose({x})", "mT": f"transpose({x})", "shape": f"size({x}, axis=0)", "size": f"size({x})",
        "ndim": "the rank, which is known from the type", "dtype": f"like={x} where a dtype is wanted",
    }.get(name)  # fmt: skip
    return found or call_instead(name, [x], {}, is_foreign=True).help


def _listed(axis: str) -> str:
    """An axis or a tuple of axes as a list."""
    inner = axis.strip()
    if inner[:1] in "([" and inner[-1:] in ")]":
        inner = inner[1:-1].strip().rstrip(",")
    return f"[{inner}]"
