"""The JSON of ``dmlc compile``; only a command that prints it loads the verdicts."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from dmlc.cli.model_comparison import ModelSize
from dmlc.cli.next_steps import NextStep
from dmlc.cli.placement_view import CopiesFacts
from dmlc.cli.signatures import SignatureFacts
from dmlc.ir.answers import Answer
from dmlc.placement.requirements import RequirementFacts
from dmlc.verifying.verdict import VerdictFacts


class ProfileFacts(Answer, frozen=True):
    """A model for one combination of sizes; ``before`` is null if no model of the program as written can be made."""

    sizes: dict[str, int]
    file: str
    opset: int
    bytes: int
    before: ModelSize | None
    after: ModelSize


class CompileAnswer(SignatureFacts, frozen=True, kw_only=True):
    """The result of a compilation. A result that differs from its source has no more than its ``verification``.

    ``before`` to ``transfers`` are about ONNX models. ``profiles`` are the files of ``--profile``, ``output`` is their
    index then.
    """

    output: str
    written: bool
    kind: str
    target: str
    opset: int | UnsetType = UNSET
    nodes: int | UnsetType = UNSET
    bytes: int | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET
    rewrites: int | UnsetType = UNSET
    before: ModelSize | UnsetType | None = UNSET
    after: ModelSize | UnsetType = UNSET
    next: list[NextStep] | UnsetType = UNSET
    requires: RequirementFacts | UnsetType = UNSET
    transfers: CopiesFacts | UnsetType = UNSET
    profiles: list[ProfileFacts] | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    diff: str | UnsetType = UNSET
    verification: VerdictFacts | list[VerdictFacts] | UnsetType = UNSET
