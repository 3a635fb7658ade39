"""Schemas of ONNX operators: from the installed onnx package, and a small table for ``com.microsoft``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct, field
from onnx import defs

from dmlc.diagnostics import option, suggestion, writing
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.ir import CALLEE, DTYPES, DType, OpError
from dmlc.onnx_schema.domains import MICROSOFT, plain_domain
from dmlc.onnx_schema.words import Words, words_of

#: ONNX's spelling of the language's dtypes.
TYPE_NAMES: dict[str, DType] = {
    {"f16": "float16", "f32": "float", "f64": "double"}.get(d.name, d.long_name): d for d in DTYPES
}
#: The opset of other domains that goes with a model: ONNX Runtime has these for all opsets from 11 on.
DOMAIN_VERSIONS: dict[str, int] = {MICROSOFT: 1, "ai.onnx.ml": 2}
#: Operators that ONNX took out, by those that are the same under another name (onnx's changelog, Scatter-11).
_RENAMED = {"Scatter": "ScatterElements"}


class Formal(Struct, frozen=True):
    """A declared operand. ``letter`` is shared by operands of one type; ``dtypes`` are dtypes of the language."""

    name: str
    letter: str
    dtypes: tuple[DType, ...]
    optional: bool = False
    variadic: bool = False
    homogeneous: bool = True


class Schema(Struct, frozen=True):
    """A declared operator. ``attributes`` maps a name to (kind, required), ``words`` to the words that it takes.

    An operator with ``is_unchecked`` is taken as it is written: its attributes have the kinds of their values.
    """

    domain: str
    name: str
    operands: tuple[Formal, ...]
    least: int
    most: int
    results: tuple[int, int]
    attributes: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    is_unchecked: bool = False
    words: Mapping[str, Words] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        return f"{self.domain}.{self.name}" if self.domain else self.name

    def formal(self, index: int) -> Formal:
        return self.operands[min(index, len(self.operands) - 1)]


def find_schema(domain: str, name: str, opset: int) -> Schema:
    """The operator at that opset. Raises ``OpError`` E0504 where there is none, E0501 where it came later."""
    domain = plain_domain(domain)
    return _find(domain, name, opset if domain == "" else DOMAIN_VERSIONS.get(domain, 1))


@lru_cache(maxsize=1024)
def _find(domain: str, name: str, opset: int) -> Schema:
    if domain == MICROSOFT:
        known = _MICROSOFT.get(name)
        if known is None:
            raise _unknown(domain, name, _MICROSOFT)
        return known
    versions = _versions().get(domain, {})
    if name not in versions:
        raise _unknown(domain, name, versions)
    if not defs.has(name, opset, domain):
        lowest = min(versions[name])
        raise OpError(
            codes.NEEDS_OPSET,
            f"ONNX has {name} from opset {lowest} on, not at {opset}",
            help=opset_help(lowest),
        )
    schema = defs.get_schema(name, opset, domain)
    if schema.deprecated:
        message = f"ONNX took {name} out at opset {schema.since_version}"
        instead = _RENAMED.get(name)
        help = writing(instead, CALLEE, safe=True) if instead else "use what took its place"
        raise OpError(codes.UNKNOWN_ONNX_OPERATOR, message, help=help)
    return _convert(schema, domain, words_of(domain, name, opset))


def opset_help(lowest: int) -> str:
    """The help where an operator came after the opset. Without the option the opset is found by itself."""
    return f"leave out {option('--opset', 'opset=')}: the lowest opset for it is {lowest}"


def later_versions(domain: str, name: str, opset: int) -> list[int]:
    """The opsets after this one at which ONNX declared the operator anew."""
    versions = [] if plain_domain(domain) else _versions().get("", {}).get(name, [])
    return sorted([version for version in versions if version > opset])


@lru_cache(maxsize=1)
def _versions() -> dict[str, dict[str, list[int]]]:
    out: dict[str, dict[str, list[int]]] = {}
    for schema in defs.get_all_schemas_with_history():
        out.setdefault(schema.domain, {}).setdefault(schema.name, []).append(schema.since_version)
    return out


def _unknown(domain: str, name: str, candidates: Mapping[str, Any]) -> OpError:
    help = suggestion(name, candidates, CALLEE)
    if not help and domain == MICROSOFT:
        help = "known are " + ", ".join(sorted(candidates))
    where = f"domain {domain}" if domain else "ONNX"
    return OpError(codes.UNKNOWN_ONNX_OPERATOR, f"{where} has no operator {name}", help=help)


def _convert(schema: Any, domain: str, words: Mapping[str, Words]) -> Schema:
    letters = {
        c.type_param_str: tuple([TYPE_NAMES[t] for t in _tensor_types(c.allowed_type_strs)])
        for c in schema.type_constraints
    }
    operands = []
    for formal in schema.inputs:
        dtypes = letters.get(formal.type_str)
        if dtypes is None:
            dtypes = tuple([TYPE_NAMES[t] for t in _tensor_types([formal.type_str])])
        option = formal.option
        operands.append(
            Formal(
                name=formal.name,
                letter=formal.type_str,
                dtypes=dtypes,
                optional=option == defs.OpSchema.FormalParameterOption.Optional,
                variadic=option == defs.OpSchema.FormalParameterOption.Variadic,
                homogeneous=formal.is_homogeneous,
            )
        )
    attributes = {a.name: (a.type.name, a.required) for a in schema.attributes.values()}
    results = (schema.min_output, schema.max_output)
    counts = (schema.min_input, schema.max_input, results)
    return Schema(domain, schema.name, tuple(operands), *counts, attributes, words=words)


def _tensor_types(texts: Sequence[str]) -> list[str]:
    names = [text[len("tensor(") : -1] for text in texts if text.startswith("tensor(")]
    return sorted([n for n in names if n in TYPE_NAMES], key=list(TYPE_NAMES).index)


def _elementwise(name: str, *, bias: int = 0, attributes: Mapping[str, tuple[str, bool]] | None = None) -> Schema:
    """An elementwise operator of com.microsoft; ``bias`` is 1 for an optional second operand, 2 for a required one."""
    floats = tuple([d for d in DTYPES if d.is_float])
    formals = [Formal("X", "T", floats)]
    if bias:
        formals.append(Formal("bias", "T", floats, optional=bias == 1))
    least = 1 + (bias == 2)
    return Schema(MICROSOFT, name, tuple(formals), least, len(formals), (1, 1), attributes or {})


def _unchecked(name: str) -> Schema:
    """An operator of com.microsoft whose declaration is not known here: ONNX Runtime checks it when it loads."""
    operand = Formal("operand", "T", DTYPES, optional=True, variadic=True, homogeneous=False)
    return Schema(MICROSOFT, name, (operand,), 1, _MOST, (1, _MOST), is_unchecked=True)


#: No operator of ``com.microsoft`` has more operands or results.
_MOST = 64
#: Operators of ONNX Runtime's own domain (onnxruntime, docs/ContribOperators.md). The onnx package has no schemas of
#: that domain. ``dmlc/inference/rules`` has a rule for each.
_MICROSOFT: dict[str, Schema] = {
    schema.name: schema
    for schema in (
        _elementwise("Gelu"),
        _elementwise("FastGelu", bias=1),
        _elementwise("BiasGelu", bias=2),
        _elementwise("QuickGelu", attributes={"alpha": ("FLOAT", False)}),
        *map(
            _unchecked,
            (
                *("Attention", "BiasAdd", "BiasSoftmax", "BiasSplitGelu", "CDist", "DecoderMaskedMultiHeadAttention"),
                *("DequantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul"),
                *("EmbedLayerNormalization", "FusedConv", "FusedGemm", "FusedMatMul"),
                *("FusedMatMulActivation", "GatedAdd", "GatedRMSNorm", "GroupNorm", "GroupQueryAttention"),
                *("Inverse", "MatMulBnb4", "MatMulIntegerToFloat", "MatMulNBits", "MoE"),
                *("MultiHeadAttention", "QAttention", "QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat"),
                *("QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul", "QLinearSoftmax", "QLinearWhere"),
                *("QLinearSigmoid", "QuantizeLinear", "RotaryEmbedding", "ScaledSiLU"),
                *("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "Tokenizer", "TransposeMatMul"),
                *("ComplexMul", "ComplexMulConj", "CropAndResize", "DynamicTimeWarping", "ExpandDims"),
                *("GatherND", "GemmFastGelu", "GridSample", "LongformerAttention", "MatMulInteger16"),
                *("MaxpoolWithMask", "MurmurHash3", "NGramRepeatBlock", "NhwcMaxPool", "QLinearConv", "QMoE"),
                *("Range", "SkipGroupNorm", "Trilu", "UnfoldTensor", "Unique"),
            ),
        ),
    )
}
