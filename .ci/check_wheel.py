"""Compare a wheel's files with the checkout's: every module and data file is there, and nothing else.

python .ci/check_wheel.py dist/ras_agent-0.1.0-py3-none-any.whl
"""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "ras_agent": "ras_agent",
    **{name: f"ras_agent/{name}" for name in ("graphs", "prompts", "tools", "eval")},
}
LEFT_OUT = ("eval/bench/",)  # programs that measure the project
NOT_SHIPPED = (".md", ".sh")


def expected() -> set[str]:
    """Return the wheel's paths of the files that git tracks in the package folders."""
    listed = subprocess.run(
        ["git", "ls-files", *FOLDERS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    tracked = [
        Path(line)
        for line in listed.stdout.splitlines()
        if not line.startswith(LEFT_OUT)
    ]
    kept = [
        path
        for path in tracked
        if path.suffix not in NOT_SHIPPED and not (ROOT / path).is_symlink()
    ]
    return {str(Path(FOLDERS[path.parts[0]], *path.parts[1:])) for path in kept}


def main(wheel: str) -> int:
    """Print what differs and return the number of differences."""
    with ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    missing, extra = sorted(expected() - found), sorted(found - expected())
    for sign, names in (("missing", missing), ("not expected", extra)):
        for name in names:
            print(f"{sign}: {name}")
    print(
        f"{len(found)} files in the wheel, {len(missing)} missing, {len(extra)} not expected"
    )
    return len(missing) + len(extra)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1])))
