"""Results of ``dmlc bench``, as a table and as plain data."""

from __future__ import annotations

from msgspec import Struct, field

from dmlc.cli.console import human_bytes
from dmlc.cli.layout import table
from dmlc.diagnostics.counted import counted
from dmlc.ir import Dim
from dmlc.ir.answers import Answer
from dmlc.placement.node_placement import NodePlacement
from dmlc.runtime.bench import NodeTime, WholeTime
from dmlc.targets.dispatch import dispatch_cost

_PROVIDERS = {"DmlExecutionProvider": "DirectML", "CPUExecutionProvider": "CPU"}
#: The report's word for the place of a node, and the provider that is then to run it.
_PLACES = {"provider": "DirectML", "cpu": "CPU"}


class BenchRow(Struct, frozen=True):
    """A node: what the report says of it (None for a target without one) and what ran (None where nothing did).

    ``inside`` is true for a node in a graph of another one, whose time includes it; ``alone`` are the microseconds of
    the node as a model of its own, until the device is done.
    """

    name: str
    op: str
    inside: bool
    said: NodePlacement | None
    ran: NodeTime | None
    alone: float | None = None

    @property
    def predicted(self) -> str:
        """Return the predicted device of the node; empty if the report has none."""
        return "" if self.said is None else _PLACES.get(self.said.where, "")

    @property
    def provider(self) -> str:
        return "" if self.ran is None else _PROVIDERS.get(self.ran.provider, self.ran.provider)

    @property
    def dispatches(self) -> int | None:
        return None if self.said is None else _number(self.said.dispatches)

    @property
    def bytes(self) -> int | None:
        return None if self.said is None else _number(self.said.bytes)


class TimedNode(Answer, frozen=True, rename={"op": "operator", "alone": "alone_microseconds"}):
    """A node: the place that the report predicts, and the provider that ran it."""

    name: str
    op: str
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


class DispatchModel(Answer, frozen=True, rename={"predicted": "predicted_us", "implied": "implied_dispatch_us"}):
    """The estimate of the dispatch model; ``implied_dispatch_us`` is the time of a dispatch by the measurement."""

    dispatches: int | None
    bytes: int | None
    dispatch_us: float
    bytes_per_us: float
    source: str
    predicted: float | None
    implied: float | None


class BenchAnswer(Answer, frozen=True, rename={"backend": "provider", "rows": "nodes", "own": "put_in"}):
    """The times of a model and of its nodes; ``sizes`` are the dims that were fixed to those of the data."""

    machine: str
    backend: str
    rounds: int
    sizes: dict[str, int]
    notes: list[str]
    rows: list[TimedNode]
    own: list[AddedNode]
    whole: TimedModel
    model: DispatchModel


def _number(value: Dim | None) -> int | None:
    return value if isinstance(value, int) else None


class Benchmark(Struct, frozen=True):
    """All that was measured. ``sizes`` are the dims that were fixed to what was fed."""

    backend: str
    machine: str
    rounds: int
    sizes: dict[str, int]
    rows: list[BenchRow]
    own: tuple[NodeTime, ...]
    whole: WholeTime
    partitions: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def disagreements(self) -> list[BenchRow]:
        """The nodes that another provider ran than the report said; none where the CPU was asked for."""
        if self.backend != "dml":
            return []
        return [row for row in self.rows if row.predicted and row.provider and row.predicted != row.provider]

    @property
    def dispatches(self) -> int | None:
        return _sum([row.dispatches for row in self.rows])

    @property
    def bytes(self) -> int | None:
        return _sum([row.bytes for row in self.rows])

    @property
    def work(self) -> float:
        """The microseconds of the model without those that a run costs anyway."""
        return max(self.whole.microseconds - self.whole.idle_microseconds, 0.0)

    @property
    def predicted(self) -> float | None:
        if self.dispatches is None or self.bytes is None:
            return None
        return dispatch_cost().microseconds(self.dispatches, self.bytes)

    @property
    def implied(self) -> float | None:
        """Microseconds a dispatch, if the bytes took what the data file says."""
        if not self.dispatches or self.bytes is None:
            return None
        return max(self.work - self.bytes / dispatch_cost().bytes_per_us, 0.0) / self.dispatches


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def benchmark_text(found: Benchmark) -> str:
    """The lines to paste into a report."""
    wrong = found.disagreements
    rows = [["node", "operator", "predicted", "ran on", "dispatches", "bytes", "us", "us by itself", "us a dispatch"]]
    for row in found.rows:
        mark = "  <- not as predicted" if row in wrong else ""
        where = row.predicted or (row.said.where if row.said else "-")
        rows.append([row.name, row.op, where, row.provider or "-", _text(row.dispatches), _size(row.bytes)])
        rows[-1] += [_us(row.ran.microseconds if row.ran else None), _us(row.alone), _each(row) + mark]
    for node in found.own:
        ran = _PROVIDERS.get(node.provider, node.provider)
        rows.append([node.name, node.op, "put in", ran, "-", "-", _us(node.microseconds), "-", "-"])
    nodes = sum(row.ran.microseconds for row in found.rows if row.ran and not row.inside)
    single = sum(row.alone for row in found.rows if row.alone is not None)
    rows.append(["sum", "", "", "", _text(found.dispatches), _size(found.bytes), _us(nodes), _us(single), ""])
    return "\n".join([found.machine, *found.notes, "", table(rows, width=None) + _whole(found)])


def _dispatches(number: int | None) -> str:
    return f"{_text(number)} dispatch{'' if number == 1 else 'es'}"


def _whole(found: Benchmark) -> str:
    cost, time = dispatch_cost(), found.whole
    place = "" if time.on_device else ", with copies from and to the host"
    lines = [
        f"whole model, fused{place}: {_us(time.microseconds)} us a run; {_us(found.work)} us without the "
        f"{_us(time.idle_microseconds)} us that a run of nothing takes",
    ]
    if found.predicted is not None:
        lines.append(
            f"dispatch.json says: {_dispatches(found.dispatches)} at {cost.dispatch_us:g} us and "
            f"{_size(found.bytes)} at {cost.bytes_per_us:g} bytes/us, {_us(found.predicted)} us"
        )
    if found.implied is not None:
        place = {"dml": "", "webgpu": " with WebGPU"}.get(found.backend, " on the CPU")
        lines.append(f"measured{place}: {_us(found.implied)} us a dispatch, if the bytes take the estimated time")
    if found.backend == "dml" and any(row.said for row in found.rows):
        wrong = found.disagreements
        said = counted(len(wrong), "node") + " not" if wrong else "every node"
        lines.append(f"placement: {said} where the report says")
    elif found.partitions is not None:
        lines.append("placement: predicted for DirectML; the CPU was asked for")
    return "\n".join(lines) + "\n"


def _text(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _size(value: int | None) -> str:
    return "-" if value is None else human_bytes(value)


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _each(row: BenchRow) -> str:
    return _us(row.alone / row.dispatches) if row.alone is not None and row.dispatches else "-"


def bench_answer(found: Benchmark) -> BenchAnswer:
    """Return the same as data."""
    cost, wrong = dispatch_cost(), found.disagreements
    nodes = [
        TimedNode.of(
            row,
            predicted=row.said.where if row.said else None,
            provider=row.ran.provider if row.ran else None,
            agrees=row not in wrong,
            microseconds=row.ran.microseconds if row.ran else None,
        )
        for row in found.rows
    ]
    sums = {"dispatches": found.dispatches, "bytes": found.bytes, "predicted": found.predicted}
    return BenchAnswer.of(
        found,
        rows=nodes,
        own=[AddedNode.of(node) for node in found.own],
        whole=TimedModel.of(found.whole, partitions=found.partitions),
        model=DispatchModel.of(cost, **sums, implied=found.implied),
    )
