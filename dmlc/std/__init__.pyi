"""Written by ``python -m tools.builder_stubs --write`` from the blocks of this folder; a test compares them."""

from typing import Any

from dmlc.builder.tensor import Tensor, TensorLike

def cosine_similarity(
    a: TensorLike,
    b: TensorLike,
    *,
    axis: int = -1,
    epsilon: float = 1e-08,
) -> Tensor:
    """The cosine of the angle between a and b along the axis, which is dropped: their product over that of their
    lengths, which counts as epsilon at least."""

def cross_entropy(
    logits: TensorLike,
    labels: TensorLike,
    *,
    axis: int = -1,
) -> Tensor:
    """The cross-entropy of each item: minus the logarithm of the softmax of its logits at its label. The axis is
    dropped. Labels are integers, of the shape of the logits without the axis."""

def group_norm(
    x: TensorLike,
    scale: TensorLike,
    bias: TensorLike,
    *,
    groups: Any,
    epsilon: float = 1e-05,
) -> Tensor:
    """Group normalization of x of shape [N, C, ...]: the channels are split into groups, each of mean 0 and variance
    1. Scale and bias have one number for each channel."""

def huber_loss(
    x: TensorLike,
    target: TensorLike,
    *,
    delta: float = 1,
) -> Tensor:
    """The Huber loss of each element: half the squared error up to delta, beyond it delta * (the error - delta / 2)."""

def instance_norm(
    x: TensorLike,
    scale: TensorLike,
    bias: TensorLike,
    *,
    epsilon: float = 1e-05,
) -> Tensor:
    """Instance normalization of x of shape [N, C, ...]: each channel of each item gets mean 0 and variance 1. Scale
    and bias have one number for each channel."""

def kl_divergence(
    log_p: TensorLike,
    log_q: TensorLike,
    *,
    axis: int = -1,
) -> Tensor:
    """The Kullback-Leibler divergence of q from p: the sum of p * (log_p - log_q) along the axis, which is dropped.
    Both are given as logarithms; where p is 0 the term is 0."""

def l2_normalize(
    x: TensorLike,
    *,
    axis: int = -1,
    epsilon: float = 1e-12,
) -> Tensor:
    """x divided by its length along the axis, which counts as epsilon at least."""

def nll_loss(
    log_probs: TensorLike,
    labels: TensorLike,
    *,
    axis: int = -1,
) -> Tensor:
    """The negative log-likelihood of each item: minus its log-probability at its label. The axis is dropped. Labels
    are integers, of the shape of the log-probabilities without the axis."""

def soft_argmax(
    x: TensorLike,
    *,
    axis: int = -1,
) -> Tensor:
    """The mean of the indices along the axis, weighted by the softmax of x. The axis is dropped. It is the sum of
    the weights that lie behind each index."""

def standard_deviation(
    x: TensorLike,
    *,
    axes: Any,
    ddof: float = 0,
    keepdims: bool = True,
) -> Tensor:
    """The square root of the variance."""

def top_k_accuracy(
    scores: TensorLike,
    labels: TensorLike,
    *,
    k: Any,
) -> Tensor:
    """The share of items whose label is among the k largest of their scores, as one f32 number. Scores have the
    classes along their last axis, which the labels lack. Of equal scores the first counts as larger."""

def variance(
    x: TensorLike,
    *,
    axes: Any,
    ddof: float = 0,
    keepdims: bool = True,
) -> Tensor:
    """The mean of the squared distances from the mean, divided by the number of elements less ddof. For floats."""
