"""``python script_client.py PORT SCRIPT WORD...`` has a ``ScriptServer`` run a script: it prints its output and exits
with its code."""

import os
import socket
import sys

with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.sendall("\0".join([os.getcwd(), *sys.argv[2:]]).encode())  # noqa: PTH109 - pathlib takes long to load
    connection.shutdown(socket.SHUT_WR)
    answer = b"".join(iter(lambda: connection.recv(65536), b""))
code, _, text = answer.partition(b"\n")
sys.stdout.write(text.decode())
sys.exit(int(code))
