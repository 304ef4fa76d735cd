"""Measures detectors of secrets on the corpus, and prints the table of docs/security.md. Judges none of them.

``python tests/support/secret_measure.py`` prints the figures; with ``--docs`` they go into the page.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "security.md"
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from detect_secrets.core.scan import scan_file  # noqa: E402
from detect_secrets.settings import default_settings, transient_settings  # noqa: E402

from stepfork.core.redaction import Redactor  # noqa: E402
from support.secret_corpus import Sample, negatives, positives  # noqa: E402

Detector = Callable[[str], str]
"""Gives the text with the secrets that it finds replaced."""
PIECE: Final = 12
"""A secret has leaked if that many of its characters in a row are left (all of it, if it is shorter)."""


def ours(text: str) -> str:
    """The text as a cassette would have it."""
    return Redactor().redact_text(text)


def detect_secrets(text: str) -> str:
    """With all plugins and filters as they are by default."""
    with default_settings():
        return _without_flagged_lines(text)


def detect_secrets_shapes(text: str) -> str:
    """Without the two plugins that go by entropy."""
    with default_settings() as settings:
        plugins = [{"name": name} for name in settings.plugins if "Entropy" not in name]
    with transient_settings({"plugins_used": plugins}):
        return _without_flagged_lines(text)


def _without_flagged_lines(text: str) -> str:
    """Each line that it reports counts as found whole: often it names only a part of the secret."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "sample.txt")
        file.write_text(text, "utf-8", newline="")
        flagged = {secret.line_number for secret in scan_file(str(file))}
    lines = text.splitlines(keepends=True)
    return "".join("<found>\n" if at in flagged else line for at, line in enumerate(lines, start=1))


DETECTORS: Final[dict[str, Detector]] = {
    "stepfork": ours,
    "detect-secrets": detect_secrets,
    "detect-secrets without entropy": detect_secrets_shapes,
}


def forms(sample: Sample) -> Iterator[str]:
    """The text by itself, in JSON, and in prose where it holds no value that only JSON gives away."""
    yield sample.text
    yield json.dumps({"content": sample.text})
    if all(len(secret) >= 8 for secret in sample.secrets) and not sample.text.startswith(("{", "QUJD")):
        yield f"He said: {sample.text}\nand left."


def leaks(secret: str, text: str) -> bool:
    """Whether a secret, or a piece of it, is left in a text, as it is or as JSON spells it."""
    return any(
        spelled[at : at + PIECE] in text
        for spelled in (secret, json.dumps(secret)[1:-1])
        for at in range(max(1, len(spelled) - PIECE + 1))
    )


@dataclass
class Figures:
    """What a detector makes of the corpus: the names of samples it missed, and of those it damaged."""

    texts: int = 0
    clean_texts: int = 0
    missed: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def row(self, name: str) -> str:
        found, kept = self.texts - len(self.missed), self.clean_texts - len(self.damaged)
        return (
            f"| {name} | {found} of {self.texts} ({found / self.texts:.0%}) "
            f"| {self.clean_texts - kept} of {self.clean_texts} ({1 - kept / self.clean_texts:.0%}) |"
        )


def measure(detector: Detector) -> Figures:
    """One detector on all forms of all samples."""
    figures = Figures()
    for sample in positives():
        for text in forms(sample):
            figures.texts += 1
            clean = detector(text)
            if any(leaks(secret, clean) for secret in sample.secrets):
                figures.missed.append(sample.name)
    for sample in negatives():
        for text in forms(sample):
            figures.clean_texts += 1
            if detector(text) != text:
                figures.damaged.append(sample.name)
    return figures


def table() -> str:
    """The table as it stands in the page."""
    rows = ["| detector | secrets found | texts without a secret that it changes |", "|---|---|---|"]
    return "\n".join([*rows, *(measure(detector).row(name) for name, detector in DETECTORS.items())])


def megabyte() -> str:
    """A megabyte of ordinary texts, with a line between two of them: together they say nothing else."""
    lines = "\n--\n".join(sample.text for sample in negatives() if len(sample.text) < 400)
    return f"{lines}\n--\n" * (1_000_000 // len(lines) + 1)


def seconds(detector: Detector, text: str) -> float:
    """CPU time of one pass, the best of three."""

    def once() -> float:
        start = time.process_time()
        detector(text)
        return time.process_time() - start

    return min(once() for _ in range(3))


def main() -> None:
    """Prints the figures; writes them into the page if asked to."""
    shown = table()
    if "--docs" in sys.argv:
        page = PAGE.read_text("utf-8")
        old = re.search(r"\| detector \|.*?(?=\n\n)", page, re.DOTALL)
        assert old is not None
        PAGE.write_text(page.replace(old[0], shown), "utf-8")
    print(shown)
    text = megabyte()
    own = seconds(ours, text)
    print(f"\n{len(text):,} characters: stepfork {own:.2f} s of CPU time")
    for name, detector in list(DETECTORS.items())[1:]:
        other = seconds(detector, text)
        print(f"{name}: {other:.2f} s, {other / own:.0f} times as long")
    for name, detector in DETECTORS.items():
        figures = measure(detector)
        print(f"\n{name} misses {sorted(set(figures.missed))}\n  and changes {sorted(set(figures.damaged))}")


if __name__ == "__main__":
    main()
