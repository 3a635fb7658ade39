"""``python -m dmlc``."""

from dmlc.cli.main import entry

if __name__ == "__main__":
    entry()
