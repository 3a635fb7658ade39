"""No node of any operator, whatever is wrong with it, ends the process or ends in a traceback."""

import subprocess
import sys

from onnx import defs

#: Nodes of each operator; more with ``python -m tools.fuzz.nodes SEED COUNT``.
COUNT = 5


def test_nodes_of_all_operators() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tools.fuzz.nodes", "0", str(COUNT)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert not ran.stderr
    last = ran.stdout.splitlines()[-1:]
    assert ran.returncode == 0, f"the operator after {last} ended the process"
    assert ran.stdout.count("\n") == len(defs.get_all_schemas_with_history())
    assert ran.stdout.count("fine") > 100
    assert ran.stdout.count("E0431") > 100
