"""Texts that readers of YAML get wrong, for Hypothesis. Knows no cassette."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = (
    [chr(code) for code in range(0x20)]
    + [chr(code) for code in range(0x7E, 0xA2)]
    + list(" \t\n\n\n  #:-?,[]{}&*!|>'\"%@`~=<\\/.0123456789eE+_xyYnNtT")
    + [
        "\u2028",
        "\u2029",
        "\ufeff",
        "\ufffe",
        "\uffff",
        "\ufffd",
        "\ue000",
        "\u3000",
        "\u200d",
        "\u202e",
        "\xad",
    ]
    + [
        "\U0001fffe",
        "\U0010ffff",
        "é",
        "漢",
        "😀",
        "#️⃣",
        "1️⃣",
        "👩‍👩‍👧",
        "a",
        "ab ",
        "word",
        "# ",
        ": ",
        " #",
        "- ",
    ]
    + [
        "---",
        "...",
        "\n---\n",
        "\n...\n",
        "%YAML 1.2\n",
        "\r\n",
        "<<",
        "null",
        "true",
        "no",
        "1e3",
        "12:30",
        "2024-01-01",
    ]
    + ["<<<<<<< ", "\n=======\n", "{{", "}}", "\n  ", "  \n", "\t\n", "\n\t", "\n#", "\n- ", "\na: b\n"]
)
NASTY = st.integers(0, len(PIECES) - 1).map(lambda at: PIECES[at])  # reports would list them all
TEXT = st.one_of(st.lists(NASTY, max_size=8).map("".join), st.text(max_size=20))
SURROGATE_TEXT = st.lists(
    st.one_of(NASTY, st.sampled_from(["\ud83d", "\ude00", "\udcff", "\\", "\\u", "\\ud83d"])), max_size=6
).map("".join)
