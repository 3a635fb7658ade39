"""Python scripts as commands of the user that run often: a process that loads ONNX Runtime takes half a second, so that
they run in this one, and the command is a small process that has it do so."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import shlex
import socketserver
import sys
import threading
from pathlib import Path
from unittest.mock import patch

CLIENT = Path(__file__).with_name("script_client.py")


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        folder, *words = self.rfile.read().decode().split("\0")
        assert Path(folder) == Path.cwd(), "a script runs in the folder of its command"
        out, code = io.StringIO(), 0
        with contextlib.redirect_stdout(out), patch.object(sys, "argv", words):
            try:
                runpy.run_path(words[0], run_name="__main__")
            except SystemExit as stop:
                code = int(stop.code or 0)
        self.wfile.write(f"{code}\n{out.getvalue()}".encode())


class ScriptServer(socketserver.TCPServer):
    """A server that runs scripts in a thread of this process, one at a time, while a test waits for its command."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def python(self) -> str:
        """Words of a shell that stand for ``python``."""
        quote = (lambda word: f'"{word}"') if os.name == "nt" else shlex.quote
        return f"{quote(sys.executable)} -S -E {quote(str(CLIENT))} {self.server_address[1]}"

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
