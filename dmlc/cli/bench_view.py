"""Results of ``dmlc bench``: the records of its document, and the same as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dmlc.cli.console import human_bytes
from dmlc.cli.layout import table
from dmlc.diagnostics.counted import counted
from dmlc.ir.answers import Answer
from dmlc.placement.node import NodePlacement
from dmlc.runtime.bench import NodeTime, WholeTime
from dmlc.targets.dispatch import dispatch_cost

_PROVIDERS = {"DmlExecutionProvider": "DirectML", "WebGpuExecutionProvider": "WebGPU", "CPUExecutionProvider": "CPU"}
#: The words for backends.
_DEVICES = {"dml": "DirectML", "webgpu": "WebGPU", "cpu": "CPU"}


class TimedNode(Answer, frozen=True, rename={"op": "operator", "alone": "alone_microseconds"}):
    """A node: the place that the report predicts, and the provider that ran it.

    ``inside`` is true for a node in a graph of another node, whose time includes it; ``alone_microseconds`` is the time
    of the node as a model by itself, until the device is done. What is not known is null.
    """

    name: str
    op: str
    inside: bool
    predicted: str | None
    provider: str | None
    agrees: bool
    dispatches: int | None
    bytes: int | None
    microseconds: float | None
    alone: float | None


class AddedNode(Answer, frozen=True, rename={"op": "operator"}):
    """A node that ONNX Runtime added."""

    name: str
    op: str
    provider: str
    microseconds: float


class TimedModel(Answer, frozen=True):
    """The whole model, a model that does nothing, and the number of fused graphs."""

    microseconds: float
    idle_microseconds: float
    on_device: bool
    partitions: int | None

    @property
    def work(self) -> float:
        """The microseconds of the model without those that a run costs anyway."""
        return max(self.microseconds - self.idle_microseconds, 0.0)


class DispatchModel(Answer, frozen=True, rename={"predicted": "predicted_us", "implied": "implied_dispatch_us"}):
    """The estimate of the dispatch model; ``implied_dispatch_us`` is the time of a dispatch by the measurement, if the
    bytes took the estimated time."""

    dispatches: int | None
    bytes: int | None
    dispatch_us: float
    bytes_per_us: float
    source: str
    predicted: float | None
    implied: float | None


class BenchAnswer(Answer, frozen=True, rename={"backend": "provider", "rows": "nodes", "own": "put_in"}):
    """The times of a model and of its nodes; ``sizes`` are the dims that were fixed to the sizes of the data, and
    ``predicted_for`` is the backend of the target, whose places are predicted."""

    machine: str
    backend: str
    predicted_for: str
    rounds: int
    sizes: dict[str, int]
    notes: list[str]
    rows: list[TimedNode]
    own: list[AddedNode]
    whole: TimedModel
    model: DispatchModel


def timed_node(
    name: str,
    op: str,
    said: NodePlacement | None,
    ran: NodeTime | None,
    alone: float | None,
    *,
    inside: bool,
    compares: bool,
) -> TimedNode:
    """The times of a node; it agrees unless the report ``compares`` and says another place than where it ran."""
    predicted, amounts = (None, (None, None)) if said is None else (said.where, (said.dispatches, said.bytes))
    provider, time = (None, None) if ran is None else (ran.provider, ran.microseconds)
    agrees = not (compares and ran and predicted in ("provider", "cpu")) or (predicted == "cpu") == (
        _ran(provider) == "CPU"
    )
    dispatches, moved = [value if isinstance(value, int) else None for value in amounts]
    return TimedNode(name, op, inside, predicted, provider, agrees, dispatches, moved, time, alone)


def _ran(provider: str | None) -> str:
    return _PROVIDERS.get(provider or "", provider or "-")


def bench_answer(
    backend: str,
    predicted_for: str,
    machine: str,
    rounds: int,
    sizes: dict[str, int],
    rows: list[TimedNode],
    own: Iterable[NodeTime],
    whole: WholeTime,
    partitions: int | None = None,
    notes: Sequence[str] = (),
) -> BenchAnswer:
    """The document about what was measured."""
    cost, time = dispatch_cost(), TimedModel.of(whole, partitions=partitions)
    dispatches, moved = _sum([row.dispatches for row in rows]), _sum([row.bytes for row in rows])
    predicted = implied = None
    if dispatches is not None and moved is not None:
        predicted = cost.microseconds(dispatches, moved)
        implied = max(time.work - moved / cost.bytes_per_us, 0.0) / dispatches if dispatches else None
    model = DispatchModel.of(cost, dispatches=dispatches, bytes=moved, predicted=predicted, implied=implied)
    added = [AddedNode.of(node) for node in own]
    return BenchAnswer(machine, backend, predicted_for, rounds, sizes, list(notes), rows, added, time, model)


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def benchmark_text(found: BenchAnswer) -> str:
    """The lines to paste into a report."""
    rows = [["node", "operator", "predicted", "ran on", "dispatches", "bytes", "us", "us by itself", "us a dispatch"]]
    places = {"provider": _DEVICES[found.predicted_for], "cpu": "CPU"}
    for row in found.rows:
        mark = "" if row.agrees else "  <- not as predicted"
        where = places.get(row.predicted or "", row.predicted or "-")
        each = _us(row.alone / row.dispatches) if row.alone is not None and row.dispatches else "-"
        rows.append([row.name, row.op, where, _ran(row.provider), _text(row.dispatches), _size(row.bytes)])
        rows[-1] += [_us(row.microseconds), _us(row.alone), each + mark]
    own = [(node.name, node.op, _ran(node.provider), _us(node.microseconds)) for node in found.own]
    rows += [[name, op, "put in", ran, "-", "-", time, "-", "-"] for name, op, ran, time in own]
    nodes = sum(row.microseconds for row in found.rows if row.microseconds is not None and not row.inside)
    single = sum(row.alone for row in found.rows if row.alone is not None)
    model = found.model
    rows.append(["sum", "", "", "", _text(model.dispatches), _size(model.bytes), _us(nodes), _us(single), ""])
    return "\n".join([found.machine, *found.notes, "", table(rows, width=None) + _whole(found)])


def _whole(found: BenchAnswer) -> str:
    model, time = found.model, found.whole
    place = "" if time.on_device else ", with copies from and to the host"
    lines = [
        f"whole model, fused{place}: {_us(time.microseconds)} us a run; {_us(time.work)} us without the "
        f"{_us(time.idle_microseconds)} us that a run of nothing takes",
    ]
    if model.predicted is not None:
        dispatches = f"{_text(model.dispatches)} dispatch{'' if model.dispatches == 1 else 'es'}"
        lines.append(
            f"dispatch.json says: {dispatches} at {model.dispatch_us:g} us and "
            f"{_size(model.bytes)} at {model.bytes_per_us:g} bytes/us, {_us(model.predicted)} us"
        )
    if model.implied is not None:
        place = {"dml": "", "webgpu": " with WebGPU"}.get(found.backend, " on the CPU")
        lines.append(f"measured{place}: {_us(model.implied)} us a dispatch, if the bytes take the estimated time")
    if found.backend == found.predicted_for and any(row.predicted for row in found.rows):
        wrong = sum(not row.agrees for row in found.rows)
        said = counted(wrong, "node") + " not" if wrong else "every node"
        lines.append(f"placement: {said} where the report says")
    elif time.partitions is not None:
        lines.append(
            f"placement: predicted for {_DEVICES[found.predicted_for]}; {_DEVICES[found.backend]} was asked for"
        )
    return "\n".join(lines) + "\n"


def _text(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _size(value: int | None) -> str:
    return "-" if value is None else human_bytes(value)


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
