"""Builds the distributions and checks them: ``python -m tools.distribution dist``.

PyPI shows the README alone, so in them its links are addresses of the repository, or words while that has no address.
The wheel from the tree and the wheel from the source distribution are the same, file by file; they hold each file of
the package that git knows; and they have the version of the package. Needs ``uv``, which fetches setuptools.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import dmlc
from tools.site.sources import in_prose, project_urls

ROOT = Path(__file__).parent.parent


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def readme_alone(text: str, repository: str | None) -> str:
    """Return the README for a page that has no other file of the repository: without an address it has no picture."""

    def change(prose: str) -> str:
        if repository is None:
            prose = re.sub(r"<picture>.*?</picture>\n*", "", prose, flags=re.DOTALL)
            return re.sub(r"\[([^\]]*)\]\((?!https?:|#)[^)]*\)", r"\1", prose)
        prose = re.sub(r'((?:src|srcset)=")(?!https?:)', rf"\g<1>{repository}/raw/HEAD/", prose)
        return re.sub(r"(\]\()(?!https?:|#)", rf"\g<1>{repository}/blob/HEAD/", prose)

    return in_prose(text, change)


def build(source: Path, out: Path, kind: str) -> Path:
    """Build one distribution of a folder."""
    subprocess.run(["uv", "build", "--quiet", f"--{kind}", "--out-dir", str(out), str(source)], check=True)
    (built,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def faults(out: Path) -> list[str]:
    """Build both distributions into a folder; what is wrong with them."""
    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name)
        # A clean copy: what else lies in a checkout must not get into a distribution.
        tree = temporary / "tree"
        known = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        files = [path for path in known.split("\0") if path and (ROOT / path).is_file()]
        for path in files:
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes((ROOT / path).read_bytes())
        readme = readme_alone((ROOT / "README.md").read_text(encoding="utf-8"), project_urls().get("Repository"))
        (tree / "README.md").write_text(readme, encoding="utf-8")
        source = build(tree, out, "sdist")
        with tarfile.open(source) as archive:
            archive.extractall(temporary, filter="data")
            inside = {member.name.partition("/")[2] for member in archive.getmembers()}
        stale = tree / "build" / "lib" / "dmlc" / "stale.py"  # as an earlier build in a checkout leaves files
        stale.parent.mkdir(parents=True)
        stale.touch()
        wheel = contents(build(tree, out, "wheel"))
        again = contents(build(temporary / source.name.removesuffix(".tar.gz"), temporary / "again", "wheel"))
    package = {path for path in files if path.startswith("dmlc/")}
    left_out = sorted(package - wheel.keys()) + sorted(
        path for path in files if not path.startswith(".") and path not in inside
    )
    return [
        *(f"{path} is in no distribution" for path in left_out),
        *(
            f"{path} differs in the wheel of the source distribution"
            for path in wheel
            if wheel[path] != again.get(path)
        ),
        *(f"{path} is only in the wheel of the source distribution" for path in again.keys() - wheel.keys()),
        *([] if f"dmlc-{dmlc.__version__}.tar.gz" == source.name else [f"the version of {source.name} is another"]),
    ]


def main() -> int:
    """Build, check, and print the sizes."""
    parser = argparse.ArgumentParser(prog="python -m tools.distribution", description=__doc__)
    parser.add_argument("out", nargs="?", type=Path, default=Path("dist"), help="a folder; dist by default")
    out = parser.parse_args().out
    found = faults(out)
    for path in sorted(out.glob("dmlc-*")):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
