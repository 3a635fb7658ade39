"""Losses and operators on text."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from dmlc.inference.fact import Fact
from dmlc.inference.query import Fault, Query, need_equal
from dmlc.inference.registry import rule


@rule("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(q: Query) -> Sequence[Fact]:
    scores, labels, weights = q.shape(0), q.shape(1), q.shape(2)
    q.need_rank(0, 2, -1)
    q.need_rank(2, 1)
    if scores is not None and labels is not None:
        if len(labels) != len(scores) - 1:
            raise Fault(f"the labels have {len(labels)} axes, not {len(scores) - 1}")
        for a, b in zip((scores[0], *scores[2:]), labels, strict=True):
            need_equal(a, b, "sizes of scores and labels")
    if scores is not None and weights is not None and q.op_type == "NegativeLogLikelihoodLoss":
        need_equal(weights[0], scores[1], "the numbers of weights and of classes")
    each = q.word("reduction", "mean") == "none"
    return [Fact(q.element(0), q.shape(1) if each else ()), Fact(q.element(0), q.shape(0))]


@rule("StringConcat")
def string_concat(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.STRING, q.broadcast(q.shape(0), q.shape(1)))]


@rule("RegexFullMatch")
def full_match(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.BOOL, q.shape(0))]


@rule("StringSplit", counts=True)
def string_split(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    parts = None if shape is None else (*shape, q.new_dim())
    return [Fact(TensorProto.STRING, parts), Fact(TensorProto.INT64, shape)]


@rule("StringNormalizer", counts=True)
def string_normalizer(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    if shape is None or "stopwords" not in q.attributes:
        return [Fact(TensorProto.STRING, shape)]
    return [Fact(TensorProto.STRING, (*shape[:-1], q.new_dim()))]


@rule("TfIdfVectorizer")
def tf_idf(q: Query) -> Sequence[Fact]:
    shape, places = q.shape(0), q.integers("ngram_indexes")
    if shape is None or not places:
        return [Fact(TensorProto.FLOAT)]
    return [Fact(TensorProto.FLOAT, (*shape[:-1], max(places) + 1))]


@rule("ImageDecoder")
def image_decoder(q: Query) -> Sequence[Fact]:
    channels = 1 if q.word("pixel_format", "RGB") == "Grayscale" else 3
    return [Fact(TensorProto.UINT8, (q.new_dim(), q.new_dim(), channels))]
