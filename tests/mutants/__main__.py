"""Plants bugs in the core, one at a time, and counts those that the tests notice. Takes minutes to hours.

    make mutants                                   # a sample of 30 for each module
    make mutants MUTANTS="--most 0 eval/significance.py ras_agent/running/budget.py"

Prints the bugs that live, then a table. A bug that changes nothing anybody could notice is listed in equivalent.py and
not counted.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.judge import Copy
from tests.mutants.plant import mutants_of
from tests.mutants.targets import TESTS

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    options = _options()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    rows: list[tuple[str, int, int, int]] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(ROOT, Path(folder) / "tree")
        for path in options.modules or TESTS:
            rows.append(
                (path, *_try_module(copy, path, options.most or None, options.seed))
            )
    _print_table(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "modules",
        nargs="*",
        metavar="FILE",
        help="files of targets.py; all of them by default",
    )
    parser.add_argument(
        "--most",
        type=int,
        default=30,
        help="mutants of each module, drawn at random; 0 for all",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="draw other mutants by this number"
    )
    options = parser.parse_args()
    if unknown := set(options.modules) - set(TESTS):
        parser.error(
            f"no tests are named in targets.py for {', '.join(sorted(unknown))}"
        )
    return options


def _try_module(
    copy: Copy, path: str, most: int | None, seed: int
) -> tuple[int, int, int]:
    """Return how many mutants were planted in a file, how many its tests noticed, and how many nobody could."""
    tests = TESTS[path]
    mutants = mutants_of((ROOT / path).read_text("utf-8"), most=most, seed=seed)
    usual = copy.measure(tests)
    print(f"{path}: {len(mutants)} mutants, {usual.seconds:.1f} s each", flush=True)
    killed = equivalent = 0
    for mutant in mutants:
        if (mutant.old, mutant.new) in EQUIVALENT.get(path, {}):
            equivalent += 1
        elif copy.try_out(path, mutant.text, tests, usual).code != 0:
            killed += 1
        else:
            print(
                f"  lives, line {mutant.line}:\n    - {mutant.old}\n    + {mutant.new}",
                flush=True,
            )
    return len(mutants), killed, equivalent


def _print_table(rows: list[tuple[str, int, int, int]]) -> None:
    rows = [*rows, ("all", *(sum(row[place] for row in rows) for place in (1, 2, 3)))]
    width = max(len(row[0]) for row in rows)
    print(
        f"\n{'file':{width}}  {'mutants':>7}  {'killed':>6}  {'equivalent':>10}  {'live':>4}  {'rate':>5}"
    )
    for path, planted, killed, equivalent in rows:
        counted = planted - equivalent
        rate = f"{100 * killed / counted:4.0f}%" if counted else "    -"
        print(
            f"{path:{width}}  {planted:7}  {killed:6}  {equivalent:10}  {counted - killed:4}  {rate}"
        )


if __name__ == "__main__":
    sys.exit(main())
