"""Cassettes made to take memory and time: each takes as much as it is long, or is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COSTLY: dict[str, str] = {
    "a text of 60 MB": "doc('tool: t\\nresult: ' + 'x' * 60_000_000)",
    "a literal block of 60 MB": "doc('tool: t\\nresult: |\\n' + '  line of text\\n' * 4_000_000)",
    "many small documents": "calls(['tool: t\\nresult: 1'] * 60_000)",
    "a chain of 20,000 requests": (
        "calls(['llm: a\\nrequest: {m: [1]}\\nresponse: {}',"
        " *['llm: a\\nextends: 1\\nappend: {m: [2]}\\nresponse: {}'] * 20_000])"
    ),
    "one value shared by all": (
        "calls([*['tool: t\\nresult: [' + '!shared \"%s\", ' % name * 150 + '1]'] * 300,"
        " 'tool: t\\nresult: 1\\nshared: {\"%s\": [%s]}' % (name, '1, ' * 30_000 + '1')])"
    ),
    "streams that come to much": (
        "calls(['llm: a\\nrequest: {}\\n'"
        " 'stream: {wire: {events: \"[%s]\", order: \"1{1000}\"}}' % ('1,' * 400 + '1')] * 300)"
    ),
    "brackets in many places": "doc('tool: t\\nresult: [' + '[],' * 500_000 + ']')",
    "a million lanes": "calls(['tool: t\\nlane: %s\\nresult: 1' % ('a.' * 100 + 'a')] * 9_000)",
}

PROGRAM = """
import hashlib, json, resource, sys
from pathlib import Path
import stepfork
from stepfork.cassette.check import faults_of
from stepfork.core.canonical import digest
end = "---\\nend: completed\\n"
name = digest([1] * 30_001)[:8]
def doc(text):
    return "stepfork: 1\\nname: x\\n---\\n" + text + "\\n" + end
def calls(documents):
    return "\\n---\\n".join(["stepfork: 1\\nname: x", *documents]) + "\\n" + end
path = Path(sys.argv[1])
path.write_text({made})
resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
cassette, faults = faults_of(path)
print(json.dumps([str(fault) for fault in faults][:3] or len(cassette)))
"""


@pytest.mark.parametrize("made", COSTLY.values(), ids=COSTLY)
def test_a_file_takes_memory_and_time_as_it_is_long(tmp_path: Path, made: str) -> None:
    """Under limits of the system, which end whoever takes more: it is read, or refused."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{made}", made), str(tmp_path / "x.yaml")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()
