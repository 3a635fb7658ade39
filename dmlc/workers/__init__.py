"""A process of its own for native code that may crash, hang or fill the memory."""

import atexit

from dmlc.workers.worker import Worker, WorkerEnded

__all__ = ["SESSIONS", "Worker", "WorkerEnded"]

#: The one process that ONNX Runtime runs in.
SESSIONS = Worker("dmlc.workers.sessions")
atexit.register(SESSIONS.stop)
