"""Losses, operators on text, and operators of ``ai.onnx.ml`` (onnx, docs/Operators-ml.md)."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto, TypeProto

from dmlc.inference.fact import Fact
from dmlc.inference.query import Fault, Query, need_equal
from dmlc.inference.registry import rule
from dmlc.ir import Tensor, product
from dmlc.onnx_schema.types import ELEMENT_TYPE

_ML = "ai.onnx.ml"


@rule("Imputer", "Normalizer", "Scaler", domain=_ML)
def scaled(q: Query) -> Sequence[Fact]:
    element = q.element(0) if q.op_type == "Imputer" else TensorProto.FLOAT
    return [Fact(element, q.shape(0))]


@rule("Binarizer", domain=_ML)
def binarizer(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0), q.shape(0))]


@rule("ArrayFeatureExtractor", domain=_ML)
def extractor(q: Query) -> Sequence[Fact]:
    shape, places = q.shape(0), q.shape(1)
    if not shape or places is None:
        return [Fact(q.element(0))]
    count = product(places)
    return [Fact(q.element(0), (1, count) if len(shape) == 1 else (*shape[:-1], count))]


@rule("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier", domain=_ML)
def classifier(q: Query) -> Sequence[Fact]:
    names = ("classlabels_strings", "classlabels_int64s", "classlabels_ints")
    given = next((q.attributes[n] for n in names if q.attributes.get(n)), ())
    has_words = bool(q.attributes.get("classlabels_strings"))
    shape = q.shape(0)
    rows = q.new_dim() if shape is None else (shape[0] if len(shape) > 1 else 1)
    label = TensorProto.STRING if has_words else TensorProto.INT64
    scores = len(given) if isinstance(given, tuple) and len(given) > 1 else q.new_dim()
    return [Fact(label, (rows,)), Fact(TensorProto.FLOAT, (rows, scores))]


@rule("LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor", domain=_ML)
def regressor(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    rows = q.new_dim() if shape is None else (shape[0] if len(shape) > 1 else 1)
    targets = 1 if q.op_type == "SVMRegressor" else q.integer("targets" if q.op_type[0] == "L" else "n_targets", 1)
    return [Fact(TensorProto.FLOAT, (rows, targets))]


@rule("LabelEncoder", domain=_ML, since=2)
def label_encoder(q: Query) -> Sequence[Fact]:
    results = {"strings": TensorProto.STRING, "int64s": TensorProto.INT64, "floats": TensorProto.FLOAT}
    found = next((results[kind] for kind in results if f"values_{kind}" in q.attributes), 0)
    table = q.attributes.get("values_tensor")
    if isinstance(table, Tensor):
        found = ELEMENT_TYPE[table.dtype]
    elif isinstance(table, Fact):
        found = table.element
    return [Fact(found, q.shape(0))]


@rule("CategoryMapper", "LabelEncoder", domain=_ML)
def mapped_category(q: Query) -> Sequence[Fact]:
    """Texts become integers, and integers texts."""
    kinds = {TensorProto.STRING: TensorProto.INT64, TensorProto.INT64: TensorProto.STRING}
    return [Fact(kinds.get(q.element(0), 0), q.shape(0))]


@rule("CastMap", domain=_ML)
def cast_map(q: Query) -> Sequence[Fact]:
    results = {"TO_FLOAT": TensorProto.FLOAT, "TO_STRING": TensorProto.STRING, "TO_INT64": TensorProto.INT64}
    is_sparse = q.word("map_form", "DENSE") == "SPARSE"
    length = q.integer("max_map", 1) if is_sparse else q.new_dim()
    return [Fact(results.get(q.word("cast_to", "TO_FLOAT"), 0), (1, length))]


@rule("DictVectorizer", domain=_ML)
def dict_vectorizer(q: Query) -> Sequence[Fact]:
    """The element type is the type of the map's values."""
    return [Fact(TypeProto.FromString(q.fact(0).proto).map_type.value_type.tensor_type.elem_type)]


@rule("FeatureVectorizer", domain=_ML)
def feature_vectorizer(q: Query) -> Sequence[Fact]:
    first, sizes = q.shape(0), q.integers("inputdimensions")
    rows = first[0] if first is not None and len(first) == 2 else q.new_dim()
    return [Fact(TensorProto.FLOAT, (rows, q.new_dim() if sizes is None else sum(sizes)))]


@rule("TreeEnsemble", domain=_ML, since=5)
def tree_ensemble(q: Query) -> Sequence[Fact]:
    q.need_rank(0, 2)
    shape = q.shape(0)
    return [Fact(q.element(0), (q.new_dim() if shape is None else shape[0], q.integer("n_targets", 1)))]


@rule("ZipMap", domain=_ML)
def zip_map(q: Query) -> Sequence[Fact]:
    out = TypeProto()
    item = out.sequence_type.elem_type.map_type
    item.key_type = TensorProto.STRING if "classlabels_strings" in q.attributes else TensorProto.INT64
    item.value_type.tensor_type.elem_type = TensorProto.FLOAT
    item.value_type.tensor_type.shape.SetInParent()
    return [Fact(proto=out.SerializeToString(deterministic=True))]


@rule("OneHotEncoder", domain=_ML)
def one_hot_encoder(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    given = q.attributes.get("cats_int64s") or q.attributes.get("cats_strings")
    if shape is None or not isinstance(given, tuple):
        return [Fact(TensorProto.FLOAT)]
    return [Fact(TensorProto.FLOAT, (*shape, len(given)))]


# --- Losses and operators on text


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
