"""``python -m tools.output_schemas [--write]``: exits 1 where a file differs from what is declared."""

from __future__ import annotations

import argparse

from tools.output_schemas.build import FOLDER, files


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.output_schemas", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files that differ")
    args = parser.parse_args()
    wanted = files()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    over = [path for path in FOLDER.glob("*.json") if path not in wanted]
    if args.write:
        FOLDER.mkdir(exist_ok=True)
        for path in stale:
            path.write_text(wanted[path], "utf-8")
        for path in over:
            path.unlink()
        return 0
    return 1 if stale or over else 0


if __name__ == "__main__":
    raise SystemExit(main())
