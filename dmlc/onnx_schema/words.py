"""The words that attributes of ONNX operators take, by operator and opset.

The words are those of the documentation of each attribute (onnx, docs/Changelog.md and docs/Changelog-ml.md). What ONNX
Runtime takes beyond them was tried with its CPU provider (1.23.2 and 1.32.0), and so was each word of its own
operators; tests try them with the installed one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from msgspec import Struct

from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.onnx_schema.installed import installed_schema


class Words(Struct, frozen=True):
    """The words of one attribute from the version ``since`` of its operator on.

    ONNX documents ``known``. ONNX Runtime takes ``others`` too. With ``any_case`` it takes each in any case, and with
    ``any_word`` it loads a node of any word. Words but the first need ``to``, the number of an element type, in the
    attribute of that name.
    """

    known: tuple[str, ...]
    since: int = 1
    others: tuple[str, ...] = ()
    any_case: bool = False
    any_word: bool = False
    to: int | None = None

    def unknown(self, given: Sequence[str]) -> int | None:
        """The number of the first word with which no runtime computes the node; None where each is taken."""
        if self.any_word:
            return None
        taken = {*self.known, *self.others}
        if self.any_case:
            taken, given = {word.casefold() for word in taken}, [word.casefold() for word in given]
        return next((number for number, word in enumerate(given) if word not in taken), None)

    def refusal(self, word: str) -> str:
        """The words that are known, and not this one."""
        return f'must be {", ".join(self.known[:-1])} or {self.known[-1]}, not "{word}"'


#: The newest version of each domain whose documentation was read. Later words are not known here.
_NEWEST = {"": 28, "ai.onnx.ml": 5, "ai.onnx.preview.training": 1, MICROSOFT: 1}
#: The number of float8e8m0 among ONNX's element types.
_FLOAT8E8M0 = 24

_AUTO_PAD = (Words(("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), others=("",)),)
_DIRECTION = (Words(("forward", "reverse", "bidirectional")),)
_ACTIVATIONS = (
    *("Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"),
    *("Softsign", "Softplus"),
)
_GATED = {"direction": _DIRECTION, "activations": (Words(_ACTIVATIONS, any_case=True),)}
_GEMM_ACTIVATIONS = (
    *("Relu", "Tanh", "Sigmoid", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Selu", "Celu"),
    *("Softsign", "Softplus"),
)
_CACHES = (Words(("NONE", "PER_TENSOR", "PER_CHANNEL"), any_case=True),)
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")
_FOR_NN, _SYMMETRIC = "tf_half_pixel_for_nn", "half_pixel_symmetric"
_REDUCTION = (
    Words(("none", "add", "mul"), since=16, any_word=True),  # another word is none for ONNX Runtime
    Words(("none", "add", "mul", "max", "min"), since=18, any_word=True),
)
_LOSS = (Words(("none", "sum", "mean"), any_word=True),)  # another word is sum for ONNX Runtime
_TRANSFORM = (Words(("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")),)
_KERNEL = {"kernel_type": (Words(("LINEAR", "POLY", "RBF", "SIGMOID")),), "post_transform": _TRANSFORM}
_TREES = {
    "nodes_modes": (Words(("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")),),
    "post_transform": _TRANSFORM,
}

#: The words by domain, operator and attribute, each row from its version on.
ROWS: Mapping[tuple[str, str], Mapping[str, tuple[Words, ...]]] = {
    **{
        ("", op): {"auto_pad": _AUTO_PAD}
        for op in ("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "LpPool", "MaxPool", "QLinearConv")
    },
    ("", "BitShift"): {"direction": (Words(("LEFT", "RIGHT")),)},
    ("", "Cast"): {"round_mode": (Words(("up", "down", "nearest"), to=_FLOAT8E8M0),)},
    ("", "CastLike"): {"round_mode": (Words(("up", "down", "nearest"), any_word=True),)},
    ("", "CausalConvWithState"): {"activation": (Words(("silu", "swish", "none")),)},
    ("", "DepthToSpace"): {"mode": (Words(("DCR", "CRD")),)},
    ("", "GRU"): _GATED,
    ("", "Gelu"): {"approximate": (Words(("none", "tanh")),)},
    ("", "GridSample"): {
        "mode": (Words(("bilinear", "nearest", "bicubic"), since=16), Words(("linear", "nearest", "cubic"), since=20)),
        "padding_mode": (Words(("zeros", "border", "reflection")),),
    },
    ("", "ImageDecoder"): {"pixel_format": (Words(("RGB", "BGR", "Grayscale")),)},
    ("", "LSTM"): _GATED,
    ("", "LinearAttention"): {"update_rule": (Words(("linear", "gated", "delta", "gated_delta")),)},
    ("", "NegativeLogLikelihoodLoss"): {"reduction": _LOSS},
    ("", "Pad"): {
        "mode": (
            Words(("constant", "reflect", "edge"), others=("wrap",)),
            Words(("constant", "reflect", "edge", "wrap"), since=19),
        )
    },
    ("", "RNN"): {"direction": _DIRECTION, "activations": (Words(_ACTIVATIONS),)},
    ("", "Resize"): {
        "coordinate_transformation_mode": (
            Words((*_COORDINATES, _FOR_NN), since=11, others=(_SYMMETRIC,)),
            Words(_COORDINATES, since=13, others=(_FOR_NN, _SYMMETRIC)),
            Words((*_COORDINATES, _SYMMETRIC), since=19, others=(_FOR_NN,)),
        ),
        "keep_aspect_ratio_policy": (Words(("stretch", "not_larger", "not_smaller")),),
        "mode": (
            Words(("nearest", "linear"), since=10, others=("cubic",)),
            Words(("nearest", "linear", "cubic"), since=11),
        ),
        "nearest_mode": (Words(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"), others=("",)),),
    },
    ("", "RoiAlign"): {
        # another word is output_half_pixel for ONNX Runtime
        "coordinate_transformation_mode": (Words(("half_pixel", "output_half_pixel"), any_word=True),),
        "mode": (Words(("avg", "max"), any_case=True),),
    },
    ("", "ScatterElements"): {"reduction": _REDUCTION},
    ("", "ScatterND"): {"reduction": _REDUCTION},
    ("", "SoftmaxCrossEntropyLoss"): {"reduction": _LOSS},
    ("", "SpaceToDepth"): {"mode": (Words(("DCR", "CRD")),)},
    ("", "StringNormalizer"): {"case_change_action": (Words(("NONE", "LOWER", "UPPER")),)},
    ("", "TensorScatter"): {"mode": (Words(("linear", "circular")),)},
    ("", "TfIdfVectorizer"): {"mode": (Words(("TF", "IDF", "TFIDF")),)},
    ("", "Upsample"): {
        "mode": (Words(("nearest", "bilinear")), Words(("nearest", "linear"), since=7, others=("cubic",)))
    },
    ("ai.onnx.ml", "CastMap"): {
        "cast_to": (Words(("TO_FLOAT", "TO_STRING", "TO_INT64")),),
        "map_form": (Words(("DENSE", "SPARSE")),),
    },
    ("ai.onnx.ml", "LinearClassifier"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "LinearRegressor"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "Normalizer"): {"norm": (Words(("MAX", "L1", "L2")),)},
    ("ai.onnx.ml", "SVMClassifier"): _KERNEL,
    ("ai.onnx.ml", "SVMRegressor"): _KERNEL,
    ("ai.onnx.ml", "TreeEnsembleClassifier"): _TREES,
    ("ai.onnx.ml", "TreeEnsembleRegressor"): {
        **_TREES,
        "aggregate_function": (Words(("AVERAGE", "SUM", "MIN", "MAX")),),
    },
    ("ai.onnx.preview.training", "Momentum"): {"mode": (Words(("nesterov", "standard")),)},
    **{
        (MICROSOFT, op): {"auto_pad": _AUTO_PAD}
        for op in (
            *("ConvTransposeWithDynamicPads", "MaxpoolWithMask", "NhwcMaxPool", "QLinearAveragePool", "QLinearConv"),
        )
    },
    (MICROSOFT, "CausalConvWithState"): {"activation": (Words(("silu", "swish", "none")),)},
    (MICROSOFT, "CropAndResize"): {"mode": (Words(("bilinear", "nearest"), any_case=True),)},
    (MICROSOFT, "DynamicQuantizeLSTM"): _GATED,
    (MICROSOFT, "FusedConv"): {
        "activation": (Words(("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish")),),
        "auto_pad": _AUTO_PAD,
    },
    (MICROSOFT, "FusedGemm"): {"activation": (Words(_GEMM_ACTIVATIONS),)},
    (MICROSOFT, "GatedRMSNorm"): {"activation": (Words(("silu", "swish", "sigmoid")),)},
    (MICROSOFT, "GridSample"): {
        "mode": (Words(("bilinear", "nearest", "bicubic")),),
        "padding_mode": (Words(("zeros", "border", "reflection")),),
    },
    (MICROSOFT, "GroupQueryAttention"): {"k_quant_type": _CACHES, "v_quant_type": _CACHES},
    (MICROSOFT, "LinearAttention"): {"update_rule": (Words(("linear", "gated", "delta", "gated_delta")),)},
    (MICROSOFT, "Pad"): {"mode": (Words(("constant", "reflect", "edge", "wrap")),)},
}
_NONE: Mapping[str, Words] = MappingProxyType({})


@lru_cache(maxsize=1024)
def words_of(domain: str, op_type: str, version: int) -> Mapping[str, Words]:
    """The words by attribute; empty for an operator without any, and for a version that is newer than the table."""
    rows = ROWS.get((domain, op_type))
    if rows is None or version > _NEWEST[domain]:
        return _NONE
    schema = installed_schema(domain, op_type, version)  # onnx has none of ONNX Runtime's own
    if schema is None and domain != MICROSOFT:
        return _NONE
    found = {}
    for name, every in rows.items():
        index = bisect_right([words.since for words in every], version)
        if index and (schema is None or name in schema.attributes):
            found[name] = every[index - 1]
    return found
