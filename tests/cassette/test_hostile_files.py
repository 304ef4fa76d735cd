"""Cassettes made to do harm: each is refused with its place; nothing runs, is imported or written."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import stepfork
from stepfork import cli
from stepfork.cassette import integrity

HEAD = "stepfork: 1\nname: x\n"
END = "---\nend: completed\n"
CANARY = "open(__file__ + '.ran', 'w').close()\ndef run(*args):\n    open(__file__ + '.ran', 'w').close()\n"


def result(value: str) -> str:
    """A cassette of one call with that result."""
    return f"{HEAD}---\ntool: t\nresult: {value}\n{END}"


def call(text: str) -> str:
    """A cassette of one call with these fields."""
    return f"{HEAD}---\n{text}\n{END}"


def llm(text: str) -> str:
    return call(f"llm: chat.completions\n{text}")


def laughs(times: int) -> str:
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, times)]
    return "\n  ".join(["", *lines])


FIRST = 'llm: chat.completions\nrequest: {messages: [{role: user, content: "1"}]}\nresponse: {}\n'
SHARED = 'tool: t\nresult: !shared "{name}"\nshared:\n  "{name}": {value}'

HOSTILE: dict[str, tuple[str, str]] = {
    # tags of Python, of YAML, of nobody
    "python object": (result("!!python/object:os.system {}"), "unknown tag"),
    "python apply": (result("!!python/object/apply:os.system [touch ran]"), "unknown tag"),
    "python new": (result("!!python/object/new:canary.run [x]"), "unknown tag"),
    "python name": (result("!!python/name:canary.run"), "unknown tag"),
    "python module": (result("!!python/module:canary"), "unknown tag"),
    "python tuple": (result("!!python/tuple [1, 2]"), "unknown tag"),
    "python bytes": (result("!!python/bytes aGk="), "unknown tag"),
    "verbatim python tag": (result("!<tag:yaml.org,2002:python/name:canary.run> ''"), "unknown tag"),
    "a directive for a tag": (
        f"%TAG !p! tag:yaml.org,2002:python/\n---\n{result('!p!name:canary.run x')}",
        "tag",
    ),
    "binary": (result("!!binary aGk="), "unknown tag"),
    "timestamp": (result("!!timestamp 2026-01-01"), "unknown tag"),
    "omap": (result("!!omap [a: 1]"), "unknown tag"),
    "own tag that is none": (result("!run canary"), "unknown tag"),
    "own tag in capitals": (result("!Tuple [1]"), "unknown tag"),
    "an escaped tag of ours": (result("!%73hared '12345678'"), "shared|tag"),
    "tag on the document": (f"{HEAD}--- !tuple\ntool: t\nresult: 1\n{END}", "tag"),
    "tag on a key": (result("{!tuple a: 1}"), "key"),
    "surrogates that are none": (result("!surrogates [1]"), "text"),
    "tagged nothing": (result("!tagged {}"), "one known tag"),
    "tagged by python": (result("!tagged {python/name: canary.run}"), "one known tag"),
    # aliases and merge keys
    "anchor": (result("&a [1]"), "anchors"),
    "alias to itself": (result("&a [*a]"), "anchors|aliases"),
    "billion laughs": (result(laughs(30)), "anchors"),
    "merge key": (result("{<<: {a: 1}}"), "merge keys"),
    "merge key of a header": (f"stepfork: 1\n<<: {{name: x}}\n{END}", "merge keys"),
    # depth
    "brackets": (result("[" * 100_000), "nested deeper"),
    "closed brackets": (result("[" * 100_000 + "]" * 100_000), "nested deeper"),
    "braces": (result("{a: " * 100_000), "nested deeper"),
    "dashes": (result("\n" + "- " * 100_000 + "1"), "nested deeper"),
    "question marks": (result("\n  " + "? " * 100_000 + "1"), "nested deeper|key"),
    "blocks": (result("\n" + "\n".join(" " * at + "a:" for at in range(1, 3_000))), "nested deeper"),
    "tags in tags": (result("!tuple [" * 100_000), "nested deeper"),
    "deep header": (f"stepfork: 1\nname: x\nargs: {'[' * 100_000}\n{END}", "nested deeper"),
    "causes without end": (call("tool: t\nerror: " + "{class: a, cause: " * 5_000), "nested deeper"),
    # numbers
    "a huge int": (result("9" * 100_000), "digits|number|ambiguous"),
    "a huge !int": (result(f"!int {{value: '{'9' * 100_000}'}}"), "int|int"),
    "a huge exponent": (result("1e999999999"), "ambiguous"),
    "a huge version": (f"stepfork: {'9' * 5000}\nname: x\n{END}", "version|digits|number|ambiguous"),
    "a huge depth": (call("depth: 999999999\ntool: t\nresult: 1"), "at most 0"),
    "a negative depth": (call("depth: -1\ntool: t\nresult: 1"), "depth"),
    "a huge decimal": (result("!decimal '1e99999999999999999999'"), "decimal"),
    "a timedelta": (result("!timedelta {days: 99999999999}"), "whole number"),
    # values of tags
    "base64 garbage": (result("!bytes '***'"), "bytes"),
    "half a base64": (result("!bytes YWJj~"), "bytes"),
    "floats of a wrong length": (result(f"!f64 {base64.b64encode(b'1234567').decode()}"), "f64"),
    "floats in no base64": (result("!f64 '!!!!'"), "f64"),
    "floats of a mapping": (result("!f64 {a: 1}"), "text"),
    "an array of a wrong shape": (
        result("!array {dtype: '<f8', shape: [99999999999], data: ''}"),
        "values",
    ),
    "an array of objects": (result("!array {dtype: O, shape: [1], data: AAAAAAAAAAA=}"), "values"),
    "a set of lists": (result("!set [[1], [2]]"), "set"),
    "a map of lists": (result("!map [[[1], 2]]"), "map"),
    "no pairs": (result("!map [1]"), "pairs"),
    "a date that is none": (result("!date '2026-99-99'"), "date"),
    "a regular expression for a class": (result("!enum '(a+)+$:b'"), "enum|class"),
    # shared values
    "shared with itself": (
        call(SHARED.format(name="0" * 8, value='!shared "00000000"')),
        "holds no reference",
    ),
    "shared by a wrong name": (call(SHARED.format(name="0" * 8, value="x")), "was changed"),
    "shared with nobody": (result('!shared "12345678"'), "no document"),
    "shared by a path": (result('!shared "../../etc"'), "name of a value"),
    "shared a mapping": (result("!shared {a: 1}"), "name of a value"),
    "shared in a list": (call("tool: t\nresult: 1\nshared: [1]"), "mapping"),
    # requests that extend others
    "extends too far": (llm("extends: 9\nresponse: {}"), "no LLM call 9 back"),
    "extends itself": (llm("extends: 0\nresponse: {}"), "extends"),
    "extends the future": (llm("extends: -1\nresponse: {}"), "extends"),
    "extends a huge number": (llm("extends: 99999999999999999999\nresponse: {}"), "extends"),
    "extends a text": (llm("extends: one\nresponse: {}"), "extends"),
    "appends to nothing": (
        call(f"{FIRST}---\nllm: chat.completions\nextends: 1\nappend: {{no: [1]}}\nresponse: {{}}"),
        "append",
    ),
    "removes a lot": (
        call(
            f"{FIRST}---\nllm: chat.completions\nextends: 1\nresponse: {{}}\n"
            "remove: ['messages[0:999999999]']"
        ),
        "remove",
    ),
    "a path without end": (
        call(
            f"{FIRST}---\nllm: chat.completions\nextends: 1\nrequest: {{{'a.' * 5000}b: 1}}\nresponse: {{}}"
        ),
        "request",
    ),
    # lanes
    "a lane of letters": (call(f"tool: t\nlane: {'a.' * 50_000}a\nresult: 1"), "lane"),
    "a lane that began": (call("tool: t\nlane: a\nstarted: 999999999\nresult: 1"), "at most"),
    "a lane after itself": (call("tool: t\nlane: a\nafter: [a]\nresult: 1"), "after"),
    "a lane with a bad name": (call('tool: t\nlane: "(a+)+$"\nresult: 1'), "lane"),
    # streams
    "a stream many times": (llm('stream: {wire: {events: "[1]", order: "1{999999999}"}}'), "would come of"),
    "a stream without wire": (llm("stream: {text: hello}"), "wire"),
    "a stream with a bad tail": (llm('stream: {wire: {events: "[1]", tail: !bytes "*"}}'), "tail"),
    # the text itself
    "a NUL": (result("a\0b"), r"U\+0000"),
    "an escape": (result("a\x1bb"), r"U\+001B"),
    "a bidirectional mark as itself is text, a surrogate is none": (result('"\\ud800"'), "escape|character"),
    "a huge escape": (result('"\\UFFFFFFFF"'), "escape|character"),
    "duplicate keys": (call("tool: t\nresult: 1\nresult: 2"), "duplicate key"),
    "a conflict": (call("tool: t\n<<<<<<< ours\nresult: 1\n=======\nresult: 2\n>>>>>>> theirs"), "conflict"),
    "another version": (HEAD.replace("1", "999", 1) + END, "999.*reads 1"),
    "no version": (f"name: x\n{END}", "stepfork"),
    "an unknown field": (call("tool: t\nresult: 1\n__class__: os"), "unknown field"),
    "two kinds": (call("tool: t\nllm: x\nresult: 1"), "exactly one"),
    "an http call": (call("http: GET x\nresult: 1"), "not supported"),
    "a long line without an end": (result("[" + "a, " * 50_000), "not valid YAML"),
    "a long key": (result("{" + "k" * 200_000 + "}"), "not valid YAML|text expected"),
    "a document of text": (f"{HEAD}---\njust text\n{END}", "mapping"),
    "a document of a list": (f"{HEAD}---\n- 1\n{END}", "mapping"),
    "an empty document": (f"{HEAD}---\n{END}", "empty"),
    "JSON": ('{"interactions": []}\n', "stepfork"),
    "a VCR cassette": ("interactions:\n- request: {uri: 'http://x'}\nversion: 1\n", "stepfork"),
    "an end in the middle": (f"{HEAD}{END}---\ntool: t\nresult: 1\n{END}", "end|exactly one"),
    "a header in the middle": (f"{HEAD}---\n{HEAD}{END}", "exactly one|unknown field"),
    # what a header may not be
    "a header of tags": (f"stepfork: 1\nname: x\nargs: !tuple {{a: 1}}\n{END}", "args"),
    "arguments of classes": (
        f"stepfork: 1\nname: x\nargs: {{a: !model {{class: 'canary:Boom', fields: 3}}}}\n{END}",
        "args",
    ),
    "a name of a number": (f"stepfork: 1\nname: 3\n{END}", "text"),
    "an error of no class": (f"{HEAD}---\nend: failed\nerror: {{class: [canary]}}\n", "error.class"),
    "an error of a tag": (f"{HEAD}---\nend: failed\nerror: {{class: a, args: [!date x]}}\n", "error"),
    "an output of a tag": (f"{HEAD}---\nend: completed\noutput: !date x\n", "output"),
}


def t() -> None:
    """The tool that the files name."""
    raise AssertionError("the body of a tool never runs on replay")


class Place:
    """A folder with a canary in it, which sings when it is imported or called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "canary.py").write_text(CANARY)
        (folder / "pyproject.toml").write_text("")

    def everything(self) -> dict[str, bytes]:
        return {
            str(place.relative_to(self.folder)): place.read_bytes()
            for place in self.folder.rglob("*")
            if place.is_file()
        }


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    made = Place(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield made
    assert "canary" not in sys.modules


def run_command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


COMMANDS = (
    ("inspect",),
    ("inspect", "--json"),
    ("validate",),
    ("validate", "--verify-integrity"),
    ("export", "--pytest", "--entrypoint", "canary:run", "--output", "test_x.py"),
    ("replay", "--entrypoint", "canary:run"),
    ("replay",),
    ("seal",),
    ("adopt",),
)


@pytest.mark.parametrize(("text", "said"), HOSTILE.values(), ids=HOSTILE)
def test_C90_C94_it_is_refused_with_its_place_and_does_nothing(
    place: Place, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = place.folder / "x.failed.yaml"
    path.write_text(text, "utf-8", "surrogatepass")
    before, modules = place.everything(), set(sys.modules)
    for use in (
        stepfork.load,
        lambda path: stepfork.replay(path).__enter__(),
        lambda path: stepfork.record(path).__enter__(),
    ):
        with pytest.raises(stepfork.CassetteError, match=f"(?s){said}") as caught:
            use(path)
        error = caught.value
        assert error.file == path
        assert error.line is not None
        assert 1 <= error.line <= text.count("\n") + 1
        assert len(str(error)) < 1_500
    for command, *options in COMMANDS:
        assert run_command(command, str(path), *options) == 2, command
        shown = capsys.readouterr()
        assert shown.out == ""
        assert f"{path.name}:" in shown.err
        assert "Traceback" not in shown.err
        assert len(shown.err) < 20_000
    assert place.everything() == before
    new = {
        name
        for name in set(sys.modules) - modules
        if not name.startswith(("stepfork", "click", "rich", "wrapt"))
    }
    assert not {name.partition(".")[0] for name in new} - sys.stdlib_module_names


@pytest.mark.parametrize(("text", "said"), HOSTILE.values(), ids=HOSTILE)
def test_with_a_checksum_that_fits_it_does_no_more(
    place: Place, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anybody can make one: then documents are read when they are reached, and not before."""
    path = place.folder / "x.yaml"
    path.write_text(integrity.sealed(text), "utf-8", "surrogatepass")
    before = place.everything()
    stepfork.tool(t)
    with pytest.raises(stepfork.CassetteError) as caught:
        stepfork.load(path)
    assert caught.value.line is not None
    with pytest.raises((stepfork.StepforkError, LookupError)), stepfork.replay(path):
        t()
    for command, *options in COMMANDS[:-1]:
        if "canary:run" in options:  # which the user has named then
            continue
        status = run_command(command, str(path), *options)
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        assert status == 2 or command == "inspect", command
    assert place.everything() == before


# -- what reads well and still may do nothing ----------------------------------------------------------

CLASSES = [
    "!model {class: 'canary:Boom', fields: {}}",
    "!dataclass {class: 'canary:Boom', fields: {}}",
    "!enum 'canary:Boom.A'",
    "!namedtuple {class: 'canary:Boom', values: []}",
    "!exception {class: 'canary:Boom', args: []}",
]


@pytest.mark.parametrize(
    "name", ["canary:Boom", "os:system", "builtins:eval", "subprocess:Popen", "builtins:exec"]
)
@pytest.mark.parametrize("form", CLASSES)
def test_a_class_that_is_not_at_hand_is_not_fetched_and_a_function_is_no_class(
    place: Place, form: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = place.folder / "x.yaml"
    path.write_text(result(form.replace("canary:Boom", name)))
    before = place.everything()
    try:
        shown = repr(stepfork.load(path).calls[0].result)
    except stepfork.CassetteError as error:
        shown = str(error)
    assert name in shown or "expected" in shown or "missing" in shown or "unknown" in shown
    for command in ("inspect", "validate"):
        assert run_command(command, str(path)) in (0, 2)
    capsys.readouterr()
    assert place.everything() == before


def test_an_error_of_a_function_or_a_class_that_is_not_there_runs_nothing(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    path = place.folder / "x.yaml"
    stepfork.tool(t)
    for name in (
        "canary:Boom",
        "os:system",
        "builtins:exit",
        "builtins:KeyboardInterrupt",
        "builtins:SystemExit",
    ):
        path.write_text(call(f'tool: t\nerror: {{class: "{name}", args: ["touch ran"]}}'))
        before = place.everything()
        with (
            pytest.warns(UserWarning, match="checksum"),
            pytest.raises((stepfork.CassetteError, SystemExit)) as caught,
            stepfork.replay(path),
        ):
            t()
        assert isinstance(caught.value, stepfork.CassetteError) or name == "builtins:SystemExit"
        assert place.everything() == before


@pytest.mark.parametrize(
    "header",
    [
        "entrypoint: os:system\nargs: [touch ran]",
        "entrypoint: canary:missing",
        "entrypoint: ../canary:run",
        "entrypoint: canary",
        'entrypoint: "canary:run\\0"',
        "entrypoint: builtins:eval\nargs: ['1']",
        "entrypoint: outside:run",
        "entrypoint: link:run",
        "tools: [canary.sub]\nentrypoint: os:system",
        "tools: ['../canary']\nentrypoint: os:system",
        "tools: ['canary:', ':run', 'a..b', '*']\nentrypoint: os:system",
        "name2: x",
    ],
)
def test_no_header_runs_anything_but_the_projects_own_functions(
    place: Place, header: str, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "outside.py").write_text(CANARY)
    (place.folder / "link.py").symlink_to(outside / "outside.py")
    sys.path.append(str(outside))
    path = place.folder / "x.yaml"
    path.write_text(f"stepfork: 1\nname: x\n{header}\n{END}")
    before = place.everything()
    try:
        if header != "entrypoint: canary:missing":  # which is the project's own, and may be imported
            for command in ("replay", "export --pytest", "inspect", "validate", "seal"):
                status = run_command(*command.split(), str(path))
                shown = capsys.readouterr()
                assert "Traceback" not in shown.err
                if command in ("replay", "export --pytest"):
                    assert status == 2
                    assert len(shown.err.splitlines()) <= 2
                path.write_bytes(before["x.yaml"])
            assert "canary" not in sys.modules
        assert place.everything() == before
        assert not list(outside.glob("*.ran"))
    finally:
        sys.path.remove(str(outside))


@pytest.mark.parametrize(
    "name",
    ["../../up", "/etc/passwd", "a/b", "..", "a\\b", "-rf", "CON", "x" * 5000, "a\nb", '"; import canary #'],
)
def test_the_name_of_a_recording_is_only_a_name(
    place: Place, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from stepfork.cassette import emitter, frame

    (place.folder / "agent.py").write_text("def run():\n    return 1\n")
    header = emitter.emit_document(frame.header_document(frame.Header(name, entrypoint="agent:run")))
    path = place.folder / "x.yaml"
    path.write_text(header + END)
    before = place.everything()
    assert run_command("export", str(path), "--pytest") in (0, 2)
    for command in ("inspect", "validate"):
        assert run_command(command, str(path)) == 0
    assert name.split("\n")[0][:20] in capsys.readouterr().out or len(name) > 200 or "\\" in name
    made = {name: text for name, text in place.everything().items() if name not in before}
    assert all(Path(name).parent == Path() or Path(name).parts[0] == "tests" for name in made), set(made)
    for text in made.values():
        compile(text, "exported", "exec")
    up = place.folder.parent
    assert not (up / "up.yaml").exists()
    sys.modules.pop("agent", None)


def test_adopt_and_seal_follow_no_link_out_of_the_project(
    place: Place, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    sound = HEAD + END
    (outside / "theirs.failed.yaml").write_text(sound)
    (outside / "good.yaml").write_text(sound)
    folder = place.folder / "cassettes"
    folder.mkdir()
    (folder / "a.failed.yaml").symlink_to(outside / "theirs.failed.yaml")
    (folder / "b.failed.yaml").write_text(sound)
    (folder / "b.yaml").symlink_to(outside / "good.yaml")
    (folder / "c.failed.yaml").write_text(sound)
    (folder / "c.yaml").write_text("broken: [")
    (outside / "edited.yaml").write_text(sound)
    (folder / "d.yaml").symlink_to(outside / "edited.yaml")
    before = {file.name: file.read_bytes() for file in outside.iterdir()}
    kept = place.everything()
    for name in ("a", "b", "c"):
        assert run_command("adopt", f"cassettes/{name}.failed.yaml") == 2, name
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert run_command("seal", "cassettes/d.yaml") == 2
    assert "a link leads from there" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in outside.iterdir()} == before
    assert place.everything() == kept
    assert (folder / "a.failed.yaml").is_symlink()
