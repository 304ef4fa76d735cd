"""``stepfork seal``: what it signs, what it refuses, and what it leaves as it is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from support.command import Project
from support.unprivileged import as_nobody, open_folder

import stepfork
from stepfork.cassette import sealing
from stepfork.cassette.store import StoredCassette

RUN = "cassettes/run.yaml"


def edit(project: Project, old: str, new: str, name: str = RUN) -> Path:
    text = project.read(name)
    assert old in text
    return project.write(name, text.replace(old, new))


def test_an_edit_is_warned_of_until_it_is_sealed(recorded: Project) -> None:
    edited = edit(recorded, "tool: lookup", "# reviewed\ntool: lookup")
    edited = edit(recorded, "rate: 72", "rate: 99")
    before = edited.read_text()
    edited.chmod(0o640)
    warned = recorded.run("inspect", RUN)
    assert f"stepfork seal {edited}" in warned.err
    checked = recorded.run("validate", RUN)
    assert checked.status == 1
    assert f"stepfork seal {RUN}" in checked.err
    refused = recorded.run("replay", RUN, "--integrity", "error")
    assert refused.status == 2
    assert f"stepfork seal {edited}" in refused.complaint

    ended = recorded.run("seal", RUN)
    assert (ended.status, ended.out, ended.err) == (0, f"{RUN}: sealed (2 calls, completed)\n", "")
    assert edited.read_text().splitlines()[:-1] == before.splitlines()[:-1], (
        "all but the checksum is as it was"
    )
    assert stat.S_IMODE(edited.stat().st_mode) == 0o640
    assert recorded.run("validate", "--verify-integrity", RUN).status == 0
    replayed = recorded.run("replay", RUN, "--integrity", "error")
    assert "equals the recorded output" in replayed.out
    assert "warning" not in replayed.err
    assert sorted(os.listdir(edited.parent)) == ["crash.yaml", "run.yaml"]


def test_nothing_to_do_is_said_and_nothing_is_written(recorded: Project) -> None:
    path = recorded.folder / RUN
    before = path.stat()
    ended = recorded.run("seal", RUN)
    assert (ended.status, ended.out) == (0, f"{RUN}: nothing to do, the checksum is right\n")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_checksum_that_was_cut_off_comes_back(recorded: Project) -> None:
    text = recorded.read(RUN)
    for cut in (text[: text.index("sha256")], text.removesuffix("\n"), text + "\n", text + text[-74:]):
        recorded.write(RUN, cut)
        if cut.endswith(text[-74:] * 2):  # the same key twice
            assert recorded.run("seal", RUN).status == 2
            continue
        assert recorded.run("seal", RUN).status == 0
        assert recorded.read(RUN).rstrip("\n") == text.rstrip("\n")
        assert StoredCassette(recorded.folder / RUN).verdict == "ok"


FAULTS = {
    "two faults": ("rate: 72", "rate: 0x1g\n  rate: 3", 2),
    "an alias": ("rate: 72", "rate: *x", 1),
    "no version": ("stepfork: 1", "stepfork: 2", 1),
    "a conflict": ("---\nend:", "<<<<<<< ours\n---\nend:", 1),
}


@pytest.mark.parametrize(("old", "new", "faults"), FAULTS.values(), ids=FAULTS)
def test_a_file_that_does_not_read_well_is_left_alone(
    recorded: Project, old: str, new: str, faults: int
) -> None:
    path = edit(recorded, old, new)
    before = path.read_bytes()
    ended = recorded.run("seal", RUN)
    assert ended.status == 2
    assert len(ended.err.splitlines()) >= 1
    assert all(line.startswith(f"{RUN}:") for line in ended.err.splitlines())
    assert path.read_bytes() == before
    assert recorded.run("validate", RUN).err == ended.err, "it lists what validate lists"


def test_all_faults_are_listed(recorded: Project) -> None:
    edit(recorded, "tool: lookup", "tool: 3")
    edit(recorded, "tool: deployments", "tool: 4")
    assert len(recorded.run("seal", RUN).err.splitlines()) == 2


def test_a_recording_that_was_cut_off_cannot_be_sealed(recorded: Project) -> None:
    text = recorded.read(RUN)
    cut = recorded.write("cassettes/cut.partial.yaml", text[: text.rindex("end:")])
    ended = recorded.run("seal", "cassettes/cut.partial.yaml")
    assert ended.status == 2
    assert "cut off" in ended.complaint
    assert cut.read_text() == text[: text.rindex("end:")]


def test_no_file_and_no_cassette_are_one_sentence(recorded: Project) -> None:
    recorded.write("cassettes/empty.yaml", "")
    for name, said in (("cassettes/none.yaml", "there is no cassette"), ("cassettes/empty.yaml", "empty")):
        ended = recorded.run("seal", name)
        assert ended.status == 2
        assert said in ended.complaint
    assert recorded.run("seal", "cassettes").status == 2
    assert recorded.run("seal").status == 2


def test_C06_what_is_sealed_has_lf_line_ends(recorded: Project) -> None:
    path = edit(recorded, "rate: 72", "rate: 99")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert recorded.run("seal", RUN).status == 0
    assert b"\r" not in path.read_bytes()
    assert path.read_bytes().startswith(b"stepfork: 1\n")
    assert StoredCassette(path).verdict == "ok"


@pytest.mark.parametrize(
    "style",
    [
        "{args: {service: api, minutes: 60}, tool: lookup, result: 1, depth: 1, lane: a}",
        '"lane": a\n"depth": 1\n? tool\n: lookup\n"result": 1',
        "tool: lookup\nresult: 1\nlane:\n  a\ndepth: 1",
    ],
)
def test_what_an_edit_brought_into_another_style_is_read_the_same_once_it_is_sealed(
    recorded: Project, style: str
) -> None:
    """What fits its checksum is read in a quicker way, which must not see other calls."""
    text = (
        "stepfork: 1\nname: x\n--- # all\ntool: outer\n# why\nresult: 2\n---\n"
        + style
        + "\n---\nend: completed\n"
    )
    path = recorded.write("cassettes/styled.yaml", text)
    before = stepfork.load(path)
    marks = [call.mark for call in StoredCassette(path).all_recorded()]
    ended = recorded.run("seal", "cassettes/styled.yaml")
    assert "sealed (1 call, completed); 1 document written anew in the usual style" in ended.out
    assert "# why" in path.read_text(), "what is in the usual style stays as it is"
    sealed = StoredCassette(path)
    assert sealed.verdict == "ok"
    assert stepfork.load(path) == before
    assert [call.mark for call in sealed.all_recorded()] == marks
    assert [call.name for call in sealed.trajectory().calls[0].children] == ["lookup"]
    assert sealed.tops == [0]  # told by the first words of each document


@pytest.mark.parametrize("cut", ["", "\n", "\n\n", "\nsha256: wrong\n\n\n", "\nsha256: wrong\n# more\n"])
def test_the_end_of_a_text_at_the_end_is_as_it_was(recorded: Project, cut: str) -> None:
    path = recorded.write(
        "cassettes/cut.yaml", f"stepfork: 1\nname: x\n---\nend: completed\noutput: |+\n  x{cut}"
    )
    before = stepfork.load(path).output
    assert recorded.run("seal", "cassettes/cut.yaml").status == 0
    assert stepfork.load(path).output == before
    assert StoredCassette(path).verdict == "ok"


def test_a_read_only_file_is_not_replaced(recorded: Project) -> None:
    with open_folder() as folder:
        path = folder / "run.yaml"
        path.write_text(recorded.read(RUN).replace("rate: 72", "rate: 99"))
        before = path.read_bytes()
        path.chmod(0o444)
        cassette = StoredCassette(path)
        said = as_nobody(lambda: sealing.seal(cassette))
        assert said == f"CassetteError: {path}: cannot be written: it is read-only; make it writable first"
        assert path.read_bytes() == before
        path.chmod(0o666)
        folder.chmod(0o555)
        assert "CassetteError" in as_nobody(lambda: sealing.seal(cassette))
        assert path.read_bytes() == before
        assert os.listdir(folder) == ["run.yaml"]
