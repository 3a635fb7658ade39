"""A process of its own for native code that may crash, hang or fill the memory."""

from dmlc.workers.worker import Worker, WorkerEnded

__all__ = ["Worker", "WorkerEnded"]
