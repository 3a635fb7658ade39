"""The words that output uses, each with a few sentences: what ``dmlc explain WORD`` prints."""

from __future__ import annotations

import textwrap

from dmlc.cli.console import Console
from dmlc.diagnostics.limits import LIMITS
from dmlc.ir.answers import Answer

_WIDTH = 100


class GlossaryEntry(Answer, frozen=True, rename={"name": "word"}):
    """A word of the output: its text, the forms in which output has it too, and what to read or run next."""

    name: str
    text: str
    forms: tuple[str, ...] = ()
    see: str = ""


_WORDS = (
    GlossaryEntry(
        "dynamic size",
        "A size of an input that the model leaves open, such as a batch. DirectML's provider compiles such a node "
        "alone, anew for each shape, and fuses nothing. --bind N=4 fixes a size by its name, --shape x=4,_ by its "
        "axis; --profile makes one model for each of a few sizes.",
        ("dynamic sizes", "dynamic", "dynamic dim", "open size", "dim"),
        "docs/profiles.md",
    ),
    GlossaryEntry(
        "fused graph",
        "Nodes that DirectML's provider compiles together, as one operator. Values inside it need no dispatch of "
        "their own to be allocated and copied. Nodes join a fused graph if they run on the GPU, all their sizes "
        "are fixed, and operands that must be constant are. One fused graph of all nodes is the best that a model "
        "can become.",
        ("fused graphs", "fused", "fusion", "partition"),
        "docs/targets.md, the report",
    ),
    GlossaryEntry(
        "not fused",
        "A node on the GPU that is compiled and dispatched alone. Reasons are a dynamic size, an operand that "
        "must be constant and is not, and an operator without graph support. An If, Loop or Scan in the same graph is "
        "one too.",
        ("one at a time", "GPU, one at a time", "nothing fused"),
        "docs/targets.md, the report",
    ),
    GlossaryEntry(
        "nodes on the CPU",
        "Nodes for which DirectML's provider has no kernel at this opset or for these types. Computations on "
        "shapes run there too. Data that such a node reads or writes is copied between CPU and GPU.",
        ("on the CPU", "runs on the CPU"),
        "dmlc explain W0601",
    ),
    GlossaryEntry(
        "CPU/GPU copy",
        "A copy of a value inside the model, from the GPU to a node on the CPU or back. It costs more than a "
        "dispatch: the CPU waits until the GPU has done everything before it. dmlc check SRC -v lists each with "
        "what saves it.",
        ("CPU/GPU copies", "copy", "copies", "transfer"),
        "docs/targets.md, CPU/GPU copies",
    ),
    GlossaryEntry(
        "shape computation",
        "Nodes that compute with sizes: Shape, Gather of a size, Concat of sizes for a Reshape. dmlc removes "
        "them as soon as the sizes that they read are known. The others run on the CPU.",
        ("shape computations", "known-shapes"),
    ),
    GlossaryEntry(
        "folded while loading",
        "Nodes that ONNX Runtime computes once, while it loads the model, because they depend on constants alone.",
        ("folded", "computed while loading", "constant folding"),
    ),
    GlossaryEntry(
        "dispatch",
        "One operator that the GPU is asked to run. The number is an estimate of the work of the driver; nodes "
        "that only change a shape have none, and some nodes have several. Both branches of an If are counted, and "
        "the body of a Loop once.",
        ("dispatches", "GPU dispatches"),
        "docs/targets.md",
    ),
    GlossaryEntry(
        "bytes moved",
        "The bytes that all nodes read and write, each operand and result once: an estimate of the memory traffic.",
        ("bytes",),
    ),
    GlossaryEntry(
        "requires",
        "The lowest ONNX Runtime, opset, feature level and device types with which a model runs where the report "
        "says. Only what exceeds opset 17 and feature level 5.0 is printed; JSON and the metadata of the model "
        "have all.",
        ("requirements",),
        "dmlc inspect MODEL.onnx",
    ),
    GlossaryEntry(
        "feature level",
        "The version of DirectML's operators on a device, such as 5.0 or 6.4. ONNX Runtime needs 5.0. A node with "
        "a higher one fails on devices below; --feature-level writes the model for a lower one.",
        ("feature levels",),
        "dmlc targets directml",
    ),
    GlossaryEntry(
        "opset",
        "The version of ONNX's operators that a model is written in. DirectML's provider has kernels up to opset "
        "21 for most operators; a node of a newer one runs on the CPU. dmlc compile writes the opset that keeps "
        "most nodes on the GPU; --opset asks for another.",
        ("opsets",),
        "docs/models.md",
    ),
    GlossaryEntry(
        "device types",
        "Types that a DirectML device may lack: INT64, UINT64, FLOAT16, FLOAT64. The provider asks the device, "
        "and leaves nodes of a type that it lacks to the CPU.",
        ("INT64 on the device", "on the device", "INT64", "UINT64"),
        "docs/targets.md, the report",
    ),
    GlossaryEntry(
        "f16",
        "Half precision: 16 bits, 11 of them for the digits, the largest number 65504. Squares of numbers over "
        "255.9 are infinite in f16, and sums lose digits. dmlc keeps a model's types: convert the model with "
        "another tool, then compile it with --accumulate f32, which computes squares and variances in f32.",
        ("half", "half precision", "fp16", "float16"),
        "dmlc explain W0604",
    ),
    GlossaryEntry(
        "f32",
        "Single precision: 32 bits, 24 of them for the digits. --f64 f32 computes f64 in f32, which DirectML's "
        "provider runs on the GPU.",
        ("float32", "single precision"),
    ),
    GlossaryEntry(
        "exact",
        "A class of rewrites: every result has the same bits as before, for every input whose result is defined. "
        "--exact allows no others.",
        ("same bits",),
        "docs/reference/language.md, rewrite classes",
    ),
    GlossaryEntry(
        "reassociates",
        "A class of rewrites: the same function of real numbers, computed in another order, so that rounding may "
        "change. These are made by default; --exact leaves them out, and verify bounds the difference.",
        ("rounding may change", "same up to rounding"),
        "docs/reference/language.md, rewrite classes",
    ),
    GlossaryEntry(
        "range",
        "A class of rewrites: equal if values lie within a range that the rule names. They are made only with "
        "--allow range, or if --range promises the values of an input.",
        ("needs a value range", "value range"),
        "docs/reference/language.md, rewrite classes",
    ),
    GlossaryEntry(
        "rule",
        "One kind of rewrite, by its name. dmlc explain NAME has its page with an example; --skip-rule NAME "
        "leaves it out; dmlc compile --list-rules lists all.",
        ("rules", "rewrite", "rewrites", "rewritten"),
    ),
    GlossaryEntry(
        "missed rewrite",
        "A rule that nearly matched: where, and the reason why it left the nodes alone. dmlc explain SRC --missed "
        "lists them, first what would save most nodes.",
        ("missed rewrites", "near miss", "near misses", "not rewritten"),
    ),
    GlossaryEntry(
        "ledger",
        "The list of all rewrites of one compilation, with the nodes before and after, and of the nodes that were "
        "removed. --ledger OUT.json writes it, and the model carries it.",
        ("rewrite log",),
        "docs/determinism.md",
    ),
    GlossaryEntry(
        "removed",
        "Nodes that are not in the compiled model. Either a rewrite took them, or their result is known without "
        "them: only constants, known sizes, a node that passes its input on. dmlc explain SRC has the reason of "
        "each.",
    ),
    GlossaryEntry(
        "lowering",
        "The way in which an operation is written in ONNX operators. Where several exist, costs of the target decide.",
        ("lowerings",),
        "docs/costs.md",
    ),
    GlossaryEntry(
        "decomposed",
        "An operator that the target lacks, written in operators that it has: GroupNormalization as "
        "InstanceNormalization, a scale and a bias.",
        ("decompose", "written out"),
        "dmlc decompose --help",
    ),
    GlossaryEntry(
        "opaque",
        "An ONNX operator that has no equal in the language: it is kept as it is, and rewritten only by rules for it.",
        ("kept as it is",),
    ),
    GlossaryEntry(
        "target",
        "The runtime that a model is compiled for: directml, webgpu, cpu, onnx or numpy, or an older release, "
        "such as directml:ort-1.17. dmlc targets lists them.",
        ("targets",),
    ),
    GlossaryEntry(
        "execution provider",
        "The part of ONNX Runtime that runs nodes on one kind of device: DirectML's provider on the GPU, the CPU "
        "provider for the rest.",
        ("provider",),
    ),
    GlossaryEntry(
        "shape check",
        "A relation of sizes that is not known to hold while the program is compiled: run time checks it with the "
        "sizes of the inputs.",
        ("shape checks", "condition", "conditions"),
    ),
    GlossaryEntry(
        "profile",
        "A set of fixed sizes with its own model, so that DirectML fuses its nodes. --profile batch=1,8 "
        "writes one model for each size, and an index.",
        ("profiles",),
        "docs/profiles.md",
    ),
    GlossaryEntry(
        "hint",
        "The mildest severity: about the source, such as a name that is not used. It never changes the exit code, "
        "with --strict neither. JSON calls it advice.",
        ("advice",),
    ),
    GlossaryEntry(
        "same",
        "The answer of a verification if no input shows a difference: the outputs are identical, or they differ "
        "by no more than rounding may. The other answers are different, and not comparable if nothing could be "
        "compared; the exit code is 1 for both.",
        ("different", "not comparable", "verdict", "identical", "same up to rounding", "rounding may differ"),
        "docs/verify.md",
    ),
    GlossaryEntry(
        "largest difference",
        "The largest distance between an element of A's output and of B's, on all inputs. It is a "
        "number, with its parts of that output's largest magnitude and of the element. It is given in units in the "
        "last place too.",
        ("of the largest value", "relative"),
        "docs/verify.md",
    ),
    GlossaryEntry(
        "units in the last place",
        "The number of floats of the dtype between two numbers. A difference of 1 is one step. It is large for tiny "
        "numbers of other signs, where the difference itself does not matter.",
        ("ulp", "unit in the last place"),
        "docs/verify.md",
    ),
    GlossaryEntry(
        "not defined",
        "Outputs on an input for which no standard says a result, such as argmax of a NaN: they may differ.",
        ("unspecified", "not compared"),
        "docs/verify.md",
    ),
    GlossaryEntry(
        "overflowed",
        "Outputs that differ because a value inside exceeds the range of its dtype, and where it does depends on the "
        "order of the operations.",
        ("beyond the precondition", "not deterministic"),
        "docs/verify.md",
    ),
    GlossaryEntry(
        "first difference",
        "The first tensor inside the model that differs by more than rounding, with its node: all values before it "
        "match. dmlc verify A B --locate finds it.",
        ("first tensor that differs", "last matching tensor", "last matching tensors"),
        "docs/wrong_node.md",
    ),
    GlossaryEntry(
        "tolerance",
        "How far two numbers may be apart and still be the same: |a - b| <= atol + rtol * |a|. By default each "
        "dtype has its own, and the original's own reaction to rounding counts too.",
        ("rtol", "atol"),
        "docs/verify.md",
    ),
    GlossaryEntry(
        "backend",
        "A program runs on dml (ONNX Runtime's DirectML provider), cpu (its CPU provider), numpy (the NumPy code "
        "that dmlc writes) or reference. The reference computes one operation after another in NumPy, and defines "
        "what a program means.",
        ("backends", "reference"),
        "dmlc explain E0553",
    ),
    GlossaryEntry(
        "kernel",
        "The code with which a provider computes an operator, for some opsets and some dtypes. A node for which "
        "DirectML's provider has no kernel runs on the CPU.",
        ("kernels", "no kernel", "placement"),
        "dmlc targets directml --op NAME",
    ),
    GlossaryEntry(
        "wrong numbers",
        "What a node gives that DirectML's provider takes and computes wrongly. dmlc compile repairs most such "
        "nodes, and refuses the others with E0592.",
        ("known fault", "known faults", "fails"),
        "docs/explanation/repairs.md",
    ),
    GlossaryEntry(
        "not known",
        "Nodes about which the tables of the target say nothing, such as operators of another domain: nobody knows "
        "where they run.",
        ("unknown", "where nobody knows"),
        "docs/targets.md",
    ),
    GlossaryEntry(
        "file size",
        "The bytes of the one .onnx file. Weights in other files have a row of their own name.",
        ("weights", "weights in other files", "initializer", "initializers"),
        "docs/models.md",
    ),
    GlossaryEntry(
        "next",
        "Commands to paste, the best first, each with what it brings. Without such a line there is nothing to gain "
        "that dmlc knows of.",
        ("bind", "--bind"),
        "docs/command_line.md",
    ),
    GlossaryEntry(
        "limits",
        "A program or a model may come from anywhere, so dmlc refuses one that is larger than people and exporters "
        "write. The error names the number that suffices; --limit NAME=NUMBER sets it. "
        + " ".join(f"{limit.name}: {limit.default:,} {limit.unit}." for limit in LIMITS.values()),
        ("limit", "--limit"),
        "docs/limits.md",
    ),
)
#: Each word, and each of its forms, without regard to case.
WORDS = {form.casefold(): word for word in reversed(_WORDS) for form in (*word.forms, word.name)}


def find_word(text: str) -> GlossaryEntry | None:
    """Return the word of that name or form; None if there is none."""
    return WORDS.get(" ".join(text.split()).casefold())


def summaries() -> dict[str, str]:
    """Return the first sentence of each word, by its name."""
    return {word.name: f"{word.text.partition('. ')[0].rstrip('.')}" for word in _WORDS}


def explain_word(word: GlossaryEntry, console: Console) -> int:
    """Show the page of a word, or its JSON document."""
    out = f"{word.name}\n\n{textwrap.fill(word.text, _WIDTH, break_on_hyphens=False)}\n"
    out += f"\nalso: {', '.join(word.forms)}\n" if word.forms else ""
    out += f"see: {word.see}\n" if word.see and not word.see.startswith("docs/") else ""  # pages are in a checkout
    console.result(out)
    console.document(word)
    return 0
