"""What a conftest with ``autopatch()`` costs a pytest run against an empty one: CPU time, the ratio.

The runs are interleaved, each in a process of its own; what is compared is the median of each kind.
The plugin is installed in two of them; the third is a run without it.

    python benchmarks/conftest_cost.py [ROUNDS]
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = {
    "empty conftest": ("", ["-p", "stepfork"]),
    "autopatch()": ("import stepfork\nstepfork.autopatch(tools=['tools'])\n", ["-p", "stepfork"]),
    "no plugin": ("", ["-p", "no:stepfork"]),
}


def main(rounds: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled code is kept, as on most machines
    spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        for kind, (conftest, _) in KINDS.items():
            place = Path(folder) / kind
            place.mkdir()
            (place / "conftest.py").write_text(conftest)
            (place / "tools.py").write_text("def search(q):\n    return q\n")
            (place / "test_it.py").write_text("def test_it():\n    pass\n")
        for number in range(rounds + 1):
            for kind, (_, options) in KINDS.items():
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                command = [sys.executable, "-m", "pytest", "-q", *options]
                subprocess.run(
                    command, cwd=Path(folder) / kind, env=environment, check=True, capture_output=True
                )
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                if number:  # the first one writes the caches
                    spent[kind].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    base = statistics.median(spent["empty conftest"])
    for kind, times in spent.items():
        median = statistics.median(times)
        print(f"{kind:15} {median * 1000:6.1f} ms  {median / base:.3f} x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
