"""Words in attributes: the table against ONNX's documentation, and against ONNX Runtime word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, defs, parser

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.onnx_schema.words import ROWS, Words, words_of
from tests.rows import each_row
from tests.versions import ONNX_RUNTIME
from tools.model_checks import session

IMAGE, FILTER, LAYER = "float[1,1,4,4] x", ", float[1,1,3,3] w", "float[3,2,4] x"
SCALES = "s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>() "
TREES = (
    "n_targets=1, nodes_falsenodeids=[2,0,0], nodes_featureids=[0,0,0], nodes_hitrates=[1.0,1.0,1.0], "
    "nodes_missing_value_tracks_true=[0,0,0], nodes_nodeids=[0,1,2], nodes_treeids=[0,0,0], nodes_truenodeids=[1,0,0], "
    "nodes_values=[0.5,0.0,0.0], target_ids=[0,0], target_nodeids=[1,2], target_treeids=[0,0], target_weights=[1.0,2.0]"
)
KINDS = 'nodes_modes=["BRANCH_LEQ","LEAF","LEAF"], '
VECTORS = "coefficients=[1.0,2.0,3.0], rho=[0.0], n_supports=0, kernel_params=[1.0,0.0,1.0]"
#: By operator, and by the first opset of a form: the inputs, a node for the attributes ``A``, the type of its result.
NODES: dict[tuple[str, int], tuple[str, str, str]] = {
    **{(op, 1): (IMAGE, f"y = {op}<kernel_shape=[2,2], A>(x)", "float") for op in ("AveragePool", "LpPool", "MaxPool")},
    **{(op, 1): (IMAGE + FILTER, f"y = {op}<A>(x, w)", "float") for op in ("Conv", "ConvTranspose")},
    ("ConvInteger", 1): ("uint8[1,1,4,4] x, uint8[1,1,3,3] w", "y = ConvInteger<A>(x, w)", "int32"),
    ("QLinearConv", 1): ("uint8[1,1,4,4] x, float s, uint8 z, uint8[1,1,3,3] w",
                         "y = QLinearConv<A>(x, s, z, w, s, z, s, z)", "uint8"),
    ("BitShift", 1): ("uint8[3] x", "y = BitShift<A>(x, x)", "uint8"),
    ("Cast", 1): ("float[3] x", "y = Cast<to=24, A>(x)", "float8e8m0"),
    ("CastLike", 1): ("float[3] x, double[1] t", "y = CastLike<A>(x, t)", "double"),
    ("DepthToSpace", 1): ("float[1,4,2,2] x", "y = DepthToSpace<blocksize=2, A>(x)", "float"),
    ("SpaceToDepth", 1): (IMAGE, "y = SpaceToDepth<blocksize=2, A>(x)", "float"),
    ("Gelu", 1): ("float[3] x", "y = Gelu<A>(x)", "float"),
    ("GridSample", 1): (IMAGE + ", float[1,2,2,2] g", "y = GridSample<A>(x, g)", "float"),
    ("GRU", 1): (f"{LAYER}, float[1,9,4] w, float[1,9,3] r", "y = GRU<hidden_size=3, A>(x, w, r)", "float"),
    ("LSTM", 1): (f"{LAYER}, float[1,12,4] w, float[1,12,3] r", "y = LSTM<hidden_size=3, A>(x, w, r)", "float"),
    ("RNN", 1): (f"{LAYER}, float[1,3,4] w, float[1,3,3] r", "y = RNN<hidden_size=3, A>(x, w, r)", "float"),
    **{(op, 1): ("float[2,3] x, int64[2] t", f"y = {op}<A>(x, t)", "float")
       for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
    ("Pad", 1): ("float[4] x", "y = Pad<pads=[1,1], A>(x)", "float"),
    ("Pad", 11): ("float[4] x", "p = Constant<value = int64[2] {1, 1}>() y = Pad<A>(x, p)", "float"),
    ("Resize", 1): (IMAGE, SCALES + "y = Resize<A>(x, s)", "float"),
    ("Resize", 11): (IMAGE, "r = Constant<value = float[8] {0.0, 0.0, 0.2, 0.0, 1.0, 1.0, 0.8, 1.0}>() "
                     "s = Constant<value = int64[4] {1, 1, 5, 6}>() e = Constant<value = float[0] {}>() "
                     "y = Resize<A>(x, r, e, s)", "float"),
    ("Resize", 13): (IMAGE, "r = Constant<value = float[8] {0.0, 0.0, 0.2, 0.0, 1.0, 1.0, 0.8, 1.0}>() "
                     's = Constant<value = int64[4] {1, 1, 5, 6}>() y = Resize<A>(x, r, "", s)', "float"),
    ("RoiAlign", 1): (IMAGE + ", float[1,4] r, int64[1] t",
                      "y = RoiAlign<output_height=2, output_width=2, A>(x, r, t)", "float"),
    ("ScatterElements", 1): ("float[3] x, int64[2] t, float[2] u", "y = ScatterElements<A>(x, t, u)", "float"),
    ("ScatterND", 1): ("float[3] x, int64[2,1] t, float[2] u", "y = ScatterND<A>(x, t, u)", "float"),
    ("StringNormalizer", 1): ("string[2] x", 'y = StringNormalizer<locale="C", A>(x)', "string"),
    ("TensorScatter", 1): ("float[1,1,4,2] x, float[1,1,2,2] u", "y = TensorScatter<A>(x, u)", "float"),
    ("TfIdfVectorizer", 1): ("int64[4] x", "y = TfIdfVectorizer<max_gram_length=1, max_skip_count=0, "
                             "min_gram_length=1, ngram_counts=[0], ngram_indexes=[0,1], pool_int64s=[2,3], "
                             "weights=[0.5,0.5], A>(x)", "float"),
    ("Upsample", 1): (IMAGE, "y = Upsample<scales=[1.0,1.0,2.0,2.0], A>(x)", "float"),
    ("Upsample", 9): (IMAGE, SCALES + "y = Upsample<A>(x, s)", "float"),
    ("LinearAttention", 1): ("float[1,2,4] x, float[1,2,1] d, float[1,2,1] b", "y, z = LinearAttention<q_num_heads=1, "
                             "kv_num_heads=1, A>(x, x, x MORE)", "float"),
    ("CausalConvWithState", 1): ("float[1,2,4] x, float[2,1,3] w", "y, z = CausalConvWithState<A>(x, w)", "float"),
    ("ImageDecoder", 1): ("uint8[4] x", "y = ImageDecoder<A>(x)", "uint8"),
    ("CastMap", 1): ("map(int64, float) x", "y = ai.onnx.ml.CastMap<max_map=3, A>(x)", "float"),
    ("LinearClassifier", 1): ("float[2,3] x", "l, y = ai.onnx.ml.LinearClassifier<coefficients=[1.0,2.0,3.0,1.0,2.0,"
                              "3.0], intercepts=[0.0,0.0], classlabels_ints=[0,1], A>(x)", "float"),
    ("LinearRegressor", 1): ("float[2,3] x", "y = ai.onnx.ml.LinearRegressor<coefficients=[1.0,2.0,3.0], "
                             "intercepts=[0.0], targets=1, A>(x)", "float"),
    ("Normalizer", 1): ("float[2,3] x", "y = ai.onnx.ml.Normalizer<A>(x)", "float"),
    ("SVMRegressor", 1): ("float[2,3] x", f"y = ai.onnx.ml.SVMRegressor<{VECTORS}, A>(x)", "float"),
    ("SVMClassifier", 1): ("float[2,3] x", "l, y = ai.onnx.ml.SVMClassifier<coefficients=[1.0,2.0,3.0,1.0,2.0,3.0], "
                           "rho=[0.0,0.0], classlabels_ints=[0,1], kernel_params=[1.0,0.0,1.0], A>(x)", "float"),
    ("TreeEnsembleRegressor", 1): ("float[2,3] x", f"y = ai.onnx.ml.TreeEnsembleRegressor<{TREES}, A>(x)", "float"),
    ("TreeEnsembleClassifier", 1): (
        "float[2,3] x", "l, y = ai.onnx.ml.TreeEnsembleClassifier<classlabels_int64s=[0,1], "
        + TREES.replace("target", "class").replace("n_classs=1, ", "") + ", A>(x)", "float"),
    ("Momentum", 1): ("float r, int64 t, float[2] x, float[2] g, float[2] v", "y, z = ai.onnx.preview.training.Momentum"
                      "<alpha=0.9, beta=1.0, norm_coefficient=0.1, A>(r, t, x, g, v)", "float"),
}  # fmt: skip
#: The same of ONNX Runtime's own operators. ``MORE`` is what a word asks for.
_LSTM = 'x, w, r, "", "", "", "", "", s, z, s, z'
OWN_NODES: dict[str, tuple[str, str, str]] = {
    "CausalConvWithState": ("float[1,2,4] x, float[2,1,3] w", "y, z = CausalConvWithState<A>(x, w)", "float"),
    "ConvTransposeWithDynamicPads": (
        IMAGE + FILTER + ", int64[4] p", "y = ConvTransposeWithDynamicPads<A>(x, w, p)", "float"),
    "CropAndResize": (IMAGE + ", float[1,4] r, int32[1] t, int32[2] c", "y = CropAndResize<A>(x, r, t, c)", "float"),
    "DynamicQuantizeLSTM": ("float[3,2,4] x, uint8[1,4,12] w, uint8[1,3,12] r, float[1] s, uint8[1] z",
                            f"y = DynamicQuantizeLSTM<hidden_size=3, A>({_LSTM})", "float"),
    "FusedConv": (IMAGE + FILTER, "y = FusedConv<MORE A>(x, w)", "float"),
    "FusedGemm": ("float[2,3] x, float[3,2] w", "y = FusedGemm<activation_alpha=0.5, activation_beta=0.5, "
                  "activation_gamma=0.5, A>(x, w)", "float"),
    "GatedRMSNorm": ("float[2,4] x, float[4] w", "y = GatedRMSNorm<A>(x, x, w)", "float"),
    "GridSample": NODES["GridSample", 1],
    "GroupQueryAttention": ("float[1,2,16] x, int32[1] l, int32 t", "y, a, b = GroupQueryAttention<num_heads=2, "
                            'kv_num_heads=2, A>(x, x, x, "", "", l, t)', "float"),
    "LinearAttention": ("float[1,2,4] x, float[1,2,1] d, float[1,2,1] b", "y, z = LinearAttention<q_num_heads=1, "
                        'kv_num_heads=1, A>(x, x, x, "", d, b)', "float"),
    "MaxpoolWithMask": (
        IMAGE + ", int32[1,1,4,4] m", "y = MaxpoolWithMask<kernel_shape=[2,2], A>(x, m)", "float"),
    "NhwcMaxPool": ("uint8[1,4,4,1] x", "y = NhwcMaxPool<kernel_shape=[2,2], A>(x)", "uint8"),
    "Pad": ("float[4] x, int64[2] p", "y = Pad<A>(x, p)", "float"),
    "QLinearAveragePool": ("uint8[1,1,4,4] x, float s, uint8 z",
                           "y = QLinearAveragePool<kernel_shape=[2,2], A>(x, s, z, s, z)", "uint8"),
    "QLinearConv": NODES["QLinearConv", 1],
}  # fmt: skip
#: Words that came to an operator with a release of ONNX Runtime.
CAME_WITH = {("FusedConv", "HardSwish"): (1, 32)}
#: The number of words in a list of words.
COUNTS = {
    ("DynamicQuantizeLSTM", "activations"): 3,
    ("GRU", "activations"): 2,
    ("LSTM", "activations"): 3,
    ("RNN", "activations"): 1,
}
#: The operands that a word asks for, and the type of the result, where it is not that of the others.
OPERANDS = {
    "LeakyRelu": "activation_params=[0.5],",
    "Clip": "activation_params=[0.0, 1.0],",
    "HardSigmoid": "activation_params=[0.5, 0.5],",
    "gated": ', "", d',
    "delta": ', "", "", b',
    "gated_delta": ', "", d, b',
}
RESULTS = {"TO_INT64": "int64", "TO_STRING": "string"}


def model(op_type: str, version: int, attribute: str, word: str, domain: str | None = None) -> ModelProto:
    """A node of an operator with one word in an attribute."""
    ml = next(own for own, name in ROWS if name == op_type) if domain is None else domain
    if ml == MICROSOFT:
        inputs, node, result = OWN_NODES[op_type]
        node = node.replace(f"{op_type}<", f"{MICROSOFT}.{op_type}<")
    else:
        form = max(first for name, first in NODES if name == op_type and first <= version)
        inputs, node, result = NODES[op_type, form]
    written = f'"{word}"'
    if attribute == "nodes_modes":
        written = f'["{word}", "LEAF", "LEAF"]'
    elif (op_type, attribute) in COUNTS:
        written = "[" + ", ".join([written] * COUNTS[op_type, attribute]) + "]"
    given = f"{attribute} = {written}"
    if op_type.startswith("TreeEnsemble") and attribute != "nodes_modes":
        given = KINDS + given
    imports = f'"": {17 if ml else version}' + (f', "{ml}": {version}' if ml else "")
    node, result = node.replace("A>", f"{given}>").replace("MORE", OPERANDS.get(word, "")), RESULTS.get(word, result)
    made = parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]> g ({inputs}) => ({result} y) {{ {node} }}")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


def _rows() -> Iterator[tuple[str, str, int, str]]:
    """Domain, operator, version and attribute: each that the installed onnx declares at opset 7 or later."""
    for (domain, op_type), rows in ROWS.items():
        if domain == MICROSOFT:
            yield from ((domain, op_type, 1, attribute) for attribute in rows)
        history = [s for s in defs.get_all_schemas_with_history() if (s.domain, s.name) == (domain, op_type)]
        first = 1 if domain else 7
        versions = {max(s.since_version, first) for s in history if not s.deprecated}
        for version in sorted(versions):
            for attribute in rows:
                if attribute in words_of(domain, op_type, version):
                    yield domain, op_type, version, attribute


LISTED = sorted(set(_rows()))
IDS = [f"{op_type}-{version}-{attribute}" for _, op_type, version, attribute in LISTED]
DOCUMENTED = [row for row in LISTED if row[0] != MICROSOFT]


def _loads(made: ModelProto) -> bool | None:
    """ONNX Runtime's verdict; None where it has no kernel, or does not know the opset."""
    try:
        found = session(made)
    except Exception as error:  # errors of its bindings have no common class
        text = str(error)
        return (
            None
            if re.search("NOT_IMPLEMENTED|not a registered|under development|Unrecognized attribute", text)
            else False
        )
    if made.graph.node[-1].op_type == "Gelu":  # refuses a word when it runs
        try:
            found.run(None, feeds(found))
        except Exception:
            return False
    return True


def feeds(found: onnxruntime.InferenceSession) -> dict[str, Any]:
    """Small numbers, and zeros for indices."""
    out: dict[str, Any] = {}
    for value in found.get_inputs():
        dtype = {"tensor(float)": "f4", "tensor(int64)": "i8", "tensor(uint8)": "u1", "tensor(double)": "f8"}[
            value.type
        ]
        count = int(np.prod(value.shape))
        data = np.zeros(count) if value.name == "t" else np.arange(count) % 7 / (4 if dtype[0] == "f" else 1)
        out[value.name] = data.reshape(value.shape).astype(dtype)
    return out


def _is_refused(made: ModelProto) -> bool:
    try:
        dmlc.compile(made, target="onnx").artifact("onnx")
    except DmlcError as error:
        assert {d.code.id for d in error.diagnostics} == {"E0431"}, error
        return True
    return False


@pytest.mark.emits_invalid("words that ONNX Runtime takes beyond ONNX's")
@each_row(("domain", "op_type", "version", "attribute"), LISTED, ids=IDS)
def test_each_word_is_taken_as_onnx_runtime_takes_it(domain: str, op_type: str, version: int, attribute: str) -> None:
    words = words_of(domain, op_type, version)[attribute]
    every = {*words.known, *words.others, *(name for row in ROWS[domain, op_type][attribute] for name in row.known)}
    for word in (*sorted(every), words.known[0].swapcase(), words.known[0] + "s", ""):
        made = model(op_type, version, attribute, word, domain)
        loads, taken = _loads(made), words.unknown([word]) is None
        if CAME_WITH.get((op_type, word), (0, 0)) > ONNX_RUNTIME:
            loads = None
        assert _is_refused(made) is not taken, word
        assert loads is None or loads is taken, f'ONNX Runtime {"takes" if loads else "refuses"} "{word}"'


@pytest.mark.emits_invalid("words that have no meaning for the type")
@each_row("to", [(6, "int32"), (10, "float16"), (17, "float8e4m3fn"), (24, "float8e8m0")])
def test_a_cast_is_rounded_as_asked_to_one_type_alone(to: tuple[int, str]) -> None:
    number, name = to
    for word in ("up", "down", "nearest"):
        made = parser.parse_model(
            f'<ir_version: 10, opset_import: ["": 24]> g (float[3] x) => ({name}[3] y) '
            f'{{ y = Cast<to = {number}, round_mode = "{word}">(x) }}'
        )
        taken = word == "up" or name == "float8e8m0"
        assert _is_refused(made) is not taken, word
        assert _loads(made) in (taken, None), word


@each_row(("domain", "op_type", "version", "attribute"), DOCUMENTED)
def test_each_word_is_documented(domain: str, op_type: str, version: int, attribute: str) -> None:
    schema = defs.get_schema(op_type, version, domain)
    words, text = words_of(domain, op_type, version)[attribute], schema.attributes[attribute].description
    documented = set(re.findall(r"\w+", text if attribute != "activations" else schema.doc))
    assert documented.issuperset(words.known)
    assert documented.isdisjoint(words.others)
    default = schema.attributes[attribute].default_value.s.decode()
    assert not default or default in words.known


#: Attributes whose text is of the user's own making.
FREE = frozenset((
    *("Cast.to", "Constant.value_string", "Constant.value_strings", "Einsum.equation", "RegexFullMatch.pattern"),
    *("StringNormalizer.locale", "StringNormalizer.stopwords", "StringSplit.delimiter", "TfIdfVectorizer.pool_strings"),
    *("CategoryMapper.cats_strings", "CategoryMapper.default_string", "DictVectorizer.string_vocabulary"),
    *("LabelEncoder.classes_strings", "LabelEncoder.default_string", "LabelEncoder.keys_strings"),
    *("LabelEncoder.values_strings", "LinearClassifier.classlabels_strings", "OneHotEncoder.cats_strings"),
    *("SVMClassifier.classlabels_strings", "TreeEnsembleClassifier.classlabels_strings", "ZipMap.classlabels_strings"),
    *("Gradient.xs", "Gradient.y", "Gradient.zs"),
))  # fmt: skip


def test_the_table_has_every_attribute_of_words() -> None:
    texts = {
        (schema.domain, schema.name, name)
        for schema in defs.get_all_schemas_with_history()
        for name, attribute in schema.attributes.items()
        if attribute.type.name in ("STRING", "STRINGS") and f"{schema.name}.{name}" not in FREE
    }
    assert texts <= {(domain, op_type, name) for (domain, op_type), rows in ROWS.items() for name in rows}


#: Words that ONNX Runtime takes and ONNX does not document.
BEYOND = [
    (op_type, version, attribute, word)
    for domain, op_type, version, attribute in LISTED
    if not domain
    for words in [words_of(domain, op_type, version)[attribute]]
    for word in (
        *words.others,
        *(["zzz"] if words.any_word else []),
        *([words.known[0].swapcase()] if words.any_case else []),
    )
]


@pytest.mark.emits_invalid("words that ONNX Runtime takes beyond ONNX's")
@each_row(("op_type", "version", "attribute", "word"), BEYOND)
@each_row("target", ["cpu", "directml"])
def test_a_word_beyond_onnx_keeps_its_meaning(
    op_type: str, version: int, attribute: str, word: str, target: str
) -> None:
    """Sums of floats may be rounded otherwise."""
    made = model(op_type, version, attribute, word)
    if _loads(made) is None:
        return
    before, after = session(made), session(dmlc.compile(made, target=target).to_onnx())
    given = feeds(before)
    for wanted, got in zip(before.run(None, given), after.run(None, given), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_the_words_of_a_newer_opset_are_not_known() -> None:
    assert words_of("", "Pad", 10_000) == {} == words_of("", "Relu", 20)


def test_any_case() -> None:
    words = Words(("Tanh", "Relu"), any_case=True)
    assert words.unknown(["tanh", "RELU", "tan"]) == 2
