"""Written by ``python -m tools.builder_stubs --write`` from the declarations in ``dmlc.ops``; a test compares them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from dmlc.builder.tensor import DTypeLike, Tensor, TensorLike
from dmlc.ir import Array, DimExpr

class TopKResults(NamedTuple):
    values: Tensor
    indices: Tensor

def argmax(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    ties: Literal["first", "last"] = "first",
    axis_direction: Literal["increasing", "decreasing"] = ...,
    dtype: DTypeLike = ...,
    like: Tensor = ...,
    keepdims: bool = True,
) -> Tensor:
    """The row-major index of the largest element over the axes together."""

def argmin(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    ties: Literal["first", "last"] = "first",
    axis_direction: Literal["increasing", "decreasing"] = ...,
    dtype: DTypeLike = ...,
    like: Tensor = ...,
    keepdims: bool = True,
) -> Tensor:
    """The row-major index of the smallest element over the axes together."""

def top_k(
    x: Tensor | Array,
    *,
    k: int | str | DimExpr,
    axis: int = -1,
    order: Literal["largest", "smallest"] = "largest",
    axis_direction: Literal["decreasing", "increasing"] = ...,
    dtype: DTypeLike = ...,
    like: Tensor = ...,
) -> TopKResults:
    """The k largest or smallest elements along an axis, in that order, and their indices."""

def hardmax(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = -1,
) -> Tensor:
    """1 at the first maximum over the axes together, 0 elsewhere."""

def sort(
    x: Tensor | Array,
    *,
    axis: int = -1,
    descending: bool = False,
) -> Tensor:
    """The elements along an axis in order: the values of top_k with k = the length."""

def argsort(
    x: Tensor | Array,
    *,
    axis: int = -1,
    descending: bool = False,
    dtype: DTypeLike = ...,
    like: Tensor = ...,
) -> Tensor:
    """The indices that sort x along an axis: the indices of top_k with k = the length."""

def reduce_sum(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """The sum."""

def reduce_mean(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """The mean; of integers truncated toward zero."""

def reduce_max(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """The largest element; of bool whether any is true."""

def reduce_min(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """The smallest element; of bool whether all are true."""

def reduce_prod(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """The product."""

def reduce_l1(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """The sum of absolute values."""

def reduce_l2(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """The square root of the sum of squares."""

def reduce_sum_square(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """The sum of squares."""

def reduce_log_sum(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """The logarithm of the sum."""

def reduce_log_sum_exp(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """The logarithm of the sum of exponentials, shifted by the maximum."""

def reduce_any(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """True where an element is true: reduce_max of bool."""

def reduce_all(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = ...,
    keepdims: bool = True,
) -> Tensor:
    """True where all elements are true: reduce_min of bool."""

def softmax(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = -1,
) -> Tensor:
    """exp(x) over its sum, over the axes together."""

def log_softmax(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int] = -1,
) -> Tensor:
    """The logarithm of softmax, over the axes together."""

def mean_variance_norm(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int],
    epsilon: float = 1e-05,
    variance: bool = True,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) over the axes together; the variance is the population's."""

def layer_norm(
    x: TensorLike,
    scale: TensorLike,
    bias: TensorLike | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-05,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, over the axes from `axis` to the last."""

def rms_norm(
    x: TensorLike,
    scale: TensorLike,
    *,
    axis: int = -1,
    epsilon: float = 1e-05,
) -> Tensor:
    """x / sqrt(mean of squares + epsilon) * scale, over the axes from `axis` to the last."""

def lp_norm(
    x: Tensor | Array,
    *,
    axis: int = -1,
    p: int = 2,
) -> Tensor:
    """x over its norm along an axis."""

def cumsum(
    x: Tensor | Array,
    *,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Running sums along an axis."""

def cumprod(
    x: Tensor | Array,
    *,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Running products along an axis."""

def abs(
    x: Tensor | Array,
) -> Tensor:
    """The absolute value."""

def neg(
    x: Tensor | Array,
) -> Tensor:
    """The negative."""

def exp(
    x: Tensor | Array,
) -> Tensor:
    """The exponential."""

def log(
    x: Tensor | Array,
) -> Tensor:
    """The natural logarithm."""

def sqrt(
    x: Tensor | Array,
) -> Tensor:
    """The square root."""

def reciprocal(
    x: Tensor | Array,
) -> Tensor:
    """One over x."""

def sign(
    x: Tensor | Array,
) -> Tensor:
    """-1, 0 or 1."""

def floor(
    x: Tensor | Array,
) -> Tensor:
    """The largest integer not above x."""

def ceil(
    x: Tensor | Array,
) -> Tensor:
    """The smallest integer not below x."""

def round(
    x: Tensor | Array,
) -> Tensor:
    """The nearest integer; halves go to the even one."""

def sin(
    x: Tensor | Array,
) -> Tensor:
    """The sine of radians."""

def cos(
    x: Tensor | Array,
) -> Tensor:
    """The cosine of radians."""

def tanh(
    x: Tensor | Array,
) -> Tensor:
    """The hyperbolic tangent."""

def sigmoid(
    x: Tensor | Array,
) -> Tensor:
    """1 / (1 + exp(-x))."""

def relu(
    x: Tensor | Array,
) -> Tensor:
    """x where it is positive, else 0."""

def erf(
    x: Tensor | Array,
) -> Tensor:
    """The error function."""

def softsign(
    x: Tensor | Array,
) -> Tensor:
    """x / (1 + abs(x))."""

def softplus(
    x: Tensor | Array,
) -> Tensor:
    """log(1 + exp(x))."""

def elu(
    x: Tensor | Array,
    *,
    alpha: float = 1.0,
) -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1)."""

def leaky_relu(
    x: Tensor | Array,
    *,
    alpha: float = 0.01,
) -> Tensor:
    """x where it is 0 or more, else alpha * x."""

def hard_sigmoid(
    x: Tensor | Array,
    *,
    alpha: float = 0.2,
    beta: float = 0.5,
) -> Tensor:
    """alpha * x + beta, but not below 0 and not above 1."""

def silu(
    x: Tensor | Array,
) -> Tensor:
    """x * sigmoid(x)."""

def gelu(
    x: Tensor | Array,
    *,
    approximate: Literal["none", "tanh"] = "none",
) -> Tensor:
    """x * (1 + erf(x / sqrt(2))) / 2, or its approximation by tanh."""

def is_nan(
    x: Tensor | Array,
) -> Tensor:
    """True where x is NaN."""

def is_inf(
    x: Tensor | Array,
) -> Tensor:
    """True where x is an infinity, of either sign."""

def not_(
    x: Tensor | Array,
) -> Tensor:
    """Logical not of bool; all bits flipped of an integer."""

def pow(
    a: TensorLike,
    b: TensorLike,
) -> Tensor:
    """a to the power b."""

def min(
    a: TensorLike,
    b: TensorLike,
) -> Tensor:
    """The smaller element."""

def max(
    a: TensorLike,
    b: TensorLike,
) -> Tensor:
    """The larger element."""

def where(
    cond: TensorLike,
    a: TensorLike,
    b: TensorLike,
) -> Tensor:
    """a where cond is true, else b; all three broadcast."""

def clip(
    x: Tensor | Array,
    *,
    min: float | None = None,
    max: float | None = None,
) -> Tensor:
    """x, but not below min and not above max; each of them may be left out, not both."""

def cast(
    x: Tensor | Array,
    *,
    to: DTypeLike = ...,
    like: Tensor = ...,
) -> Tensor:
    """The same values in another dtype; written `x as f16`."""

def reshape(
    x: Tensor | Array,
    *,
    shape: int | str | DimExpr | Sequence[int | str | DimExpr] = ...,
    like: Tensor = ...,
) -> Tensor:
    """The same elements in row-major order in another shape; one size may be -1."""

def transpose(
    x: Tensor | Array,
    *,
    perm: Sequence[int] = ...,
) -> Tensor:
    """The axes in another order: axis i of the result is axis perm[i] of x; without perm reversed."""

def squeeze(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int],
) -> Tensor:
    """Without the named axes, which have size 1."""

def unsqueeze(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int],
) -> Tensor:
    """With new axes of size 1; they count in the result."""

def expand(
    x: Tensor | Array,
    *,
    shape: int | str | DimExpr | Sequence[int | str | DimExpr],
) -> Tensor:
    """x broadcast with the shape, which may be shorter and may hold 1."""

def concat(
    *x: Tensor | Array,
    axis: int,
) -> Tensor:
    """The operands one after another along an axis; their other sizes are equal."""

def split(
    x: Tensor | Array,
    *,
    axis: int,
    sizes: int | str | DimExpr | Sequence[int | str | DimExpr],
) -> tuple[Tensor, ...]:
    """x cut along an axis; one result for each size."""

def slice(
    x: Tensor | Array,
    *,
    starts: int | str | DimExpr | Sequence[int | str | DimExpr],
    ends: int | str | DimExpr | Sequence[int | str | DimExpr],
    axes: int | Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> Tensor:
    """A part of x: from start to before end by step, along each named axis."""

def pad(
    x: Tensor | Array,
    *,
    pads: int | str | DimExpr | Sequence[int | str | DimExpr],
    value: float = 0,
) -> Tensor:
    """x with a value around it; pads are the counts before each axis, then those after each axis."""

def tile(
    x: Tensor | Array,
    *,
    repeats: int | str | DimExpr | Sequence[int | str | DimExpr],
) -> Tensor:
    """x repeated along each axis, as a whole."""

def stack(
    *x: Tensor | Array,
    axis: int = 0,
) -> Tensor:
    """The operands, of one shape, one after another along a new axis."""

def flip(
    x: Tensor | Array,
    *,
    axes: int | Sequence[int],
) -> Tensor:
    """The elements in reverse order along each named axis."""

def gather(
    x: TensorLike,
    i: TensorLike,
    *,
    axis: int = ...,
    batch_axes: int = 0,
) -> Tensor:
    """The slices of x at the indices: the axis is replaced by the axes of i, but for the batch axes."""

def gather_elements(
    x: TensorLike,
    i: TensorLike,
    *,
    axis: int = 0,
) -> Tensor:
    """For each index the element of x at its own place, but for the axis, where the index says."""

def scatter_elements(
    x: TensorLike,
    i: TensorLike,
    updates: TensorLike,
    *,
    axis: int = 0,
) -> Tensor:
    """x with the updates put at the places that gather_elements would read."""

def one_hot(
    indices: Tensor | Array,
    *,
    depth: int | str | DimExpr,
    axis: int = -1,
    on: float = 1,
    off: float = 0,
    dtype: DTypeLike = ...,
    like: Tensor = ...,
) -> Tensor:
    """A new axis that holds `on` at the index and `off` elsewhere."""

def iota(
    *,
    length: int | str | DimExpr,
    dtype: DTypeLike = ...,
    like: Tensor = ...,
) -> Tensor:
    """The numbers 0, 1, 2 and so on."""

def full(
    *,
    shape: int | str | DimExpr | Sequence[int | str | DimExpr],
    value: float | DimExpr,
    dtype: DTypeLike = ...,
    like: Tensor = ...,
) -> Tensor:
    """A tensor whose elements are all one value."""

def matmul(
    a: TensorLike,
    b: TensorLike,
) -> Tensor:
    """The matrix product by NumPy's rules: leading axes broadcast, vectors are rows or columns."""

__all__ = [
    "abs",
    "argmax",
    "argmin",
    "argsort",
    "cast",
    "ceil",
    "clip",
    "concat",
    "cos",
    "cumprod",
    "cumsum",
    "elu",
    "erf",
    "exp",
    "expand",
    "flip",
    "floor",
    "full",
    "gather",
    "gather_elements",
    "gelu",
    "hard_sigmoid",
    "hardmax",
    "iota",
    "is_inf",
    "is_nan",
    "layer_norm",
    "leaky_relu",
    "log",
    "log_softmax",
    "lp_norm",
    "matmul",
    "max",
    "mean_variance_norm",
    "min",
    "neg",
    "not_",
    "one_hot",
    "pad",
    "pow",
    "reciprocal",
    "reduce_all",
    "reduce_any",
    "reduce_l1",
    "reduce_l2",
    "reduce_log_sum",
    "reduce_log_sum_exp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reduce_sum_square",
    "relu",
    "reshape",
    "rms_norm",
    "round",
    "scatter_elements",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "slice",
    "softmax",
    "softplus",
    "softsign",
    "sort",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "tanh",
    "tile",
    "top_k",
    "transpose",
    "unsqueeze",
    "where",
]
