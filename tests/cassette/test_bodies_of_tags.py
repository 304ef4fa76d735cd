"""What stands under a tag must be what docs/cassette-format.md says of it: `validate` finds what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.counted import calls_made

import stepfork
from stepfork.cassette.check import faults_of
from stepfork.errors import CassetteError

WRONG = (
    "!complex [1, 2]",
    "!complex [1.0]",
    "!fraction [1]",
    "!fraction [1, 0]",
    "!range [1, 2]",
    "!slice [1]",
    "!timezone true",
    '!datetime "2024-01-01"',
    '!datetime "2024-01-01T00:00:00+00:00"',
    '!datetime "2024-01-01T00:00:00+24:00"',
    '!datetime "2024-01-01T00:00:00+02"',
    '!datetime "2024-01-01T00:00:00+01:00:30"',
    '!datetime "2024-01-01T00:00:00Z+01:00"',
    '!datetime "2024-01-01+01:00"',
    '!datetime ["2024-01-01T00:00:00+01:00", 3600000000, 0]',
    '!datetime ["2024-01-01T00:00:00", 86400000000, 0]',
    '!datetime ["2024-01-01T00:00:00", null, 2]',
    '!datetime ["2024-01-01T00:00:00", null, true]',
    '!time "10:00:00-00:00"',
    '!time "+02:00"',
    '!date "20240101"',
    '!decimal "0.1_0"',
    "!uuid 00000000000000000000000000000001",
    '!ip-address "::0001"',
    "!set [1, 1]",
    "!set [1, true]",
    "!frozenset [a, a]",
    "!multipart [1]",
    "!multipart [{name: a}]",
    "!multipart [{name: a, text: 1}]",
    "!multipart [{name: a, size: b, sha256: c}]",
    "!regex [a]",
    "!regex !regex a",
    "!regex (",
    "!regex {pattern: a, flags: true}",
    "!bytes-stream {content: null}",
    "!bytes-stream {content: a}",
    "!struct-time [1, 2, 3]",
    "!struct-time [1, 2, 3, 4, 5, 6, 7, 8, a]",
    "!enum {class: 'a:B', value: x}",
    "!model {class: 'a:B', fields: {}, set: [1]}",
    "!model {class: 'a:B', fields: {}, of: [1]}",
    "!secret {class: 'pydantic.types:SecretStr', secret: 1}",
    "!url {class: 'pydantic.networks:HttpUrl', value: 1}",
    "!exception {class: Nope}",
    "!exception {class: 'a:B', notes: [1]}",
    "!exception {class: 'a:B', args: [], init: []}",
    "!exception {class: 'a:B', suppress_context: 1}",
    "!exception {class: 'a:B', nonsense: 1}",
    "!http-request {library: requests, method: GET, url: u, text: 1}",
    "!http-response {library: httpx, status: 200, request: 1}",
    "!http-response {library: requests, status: 200, history: [1]}",
    "!http-response {library: requests, status: 200, reason: 1}",
    "!array {dtype: int64, values: [1.5]}",
    "!array {dtype: int8, values: [300]}",
    "!array {dtype: uint8, values: [-1]}",
    "!array {dtype: float64, values: [1]}",
    "!array {dtype: float32, values: [1.0e+300]}",
    "!array {dtype: bool, values: [1]}",
    '!array {dtype: "<U2", values: [abc]}',
    '!array {dtype: "<U2", values: [1]}',
    "!array {dtype: 'datetime64[s]', values: [yesterday]}",
    "!array {dtype: 'datetime64[s]', values: ['2024-13-01']}",
    "!array {dtype: 'timedelta64[s]', values: [1.5]}",
    "!array {dtype: 'datetime64[s]', values: !bytes AAAA}",
    "!array {dtype: object, values: !bytes AAAAAAAAAAA=}",
    "!array {dtype: [[a, '<i4']], values: [1]}",
    "!array {dtype: [[a, nonsense]], values: !bytes AAAA}",
    "!array {dtype: nonsense, values: []}",
    "!numpy {dtype: int64, value: 1.5}",
    "!series {name: a, dtype: Int64, values: [1.5], index: {range: [0, 1, 1]}}",
    "!series {name: a, dtype: boolean, values: [1], index: {range: [0, 1, 1]}}",
    "!series {name: a, dtype: str, values: [1], index: {range: [0, 1, 1]}}",
    "!series {name: a, dtype: category, values: [b], categories: [a], index: {range: [0, 1, 1]}}",
    "!series {name: a, dtype: category, values: [a], index: {range: [0, 1, 1]}}",
    "!series {name: a, values: [1], index: {range: [0, 1, 1]}}",
    "!dataframe {columns: [{name: a, dtype: 'datetime64[us, UTC]', values: [1]}], index: {range: [0, 1, 1]}}",
)


def written(path: Path, call: str) -> Path:
    path.write_text(f"stepfork: 1\nname: a\n---\n{call}\n---\nend: completed\n", "utf-8")
    return path


@pytest.mark.parametrize("spelled", WRONG)
def test_C94_a_body_that_does_not_fit_its_tag_is_found(tmp_path: Path, spelled: str) -> None:
    path = written(tmp_path / "x.yaml", f"tool: f\nresult:\n- {spelled}")
    _, faults = faults_of(path)
    assert [str(fault).startswith(f"{path}:6: result[0]: ") for fault in faults] == [True]
    with pytest.raises(CassetteError):
        stepfork.load(path)


ERRORS = {
    "a class without a module": ("class: Nope", "error.class"),
    "notes that are no texts": ("class: 'a:B', notes: [1]", "error.notes[0]"),
    "arguments twice": ("class: 'a:B', args: [], init: []", "error.args"),
    "no flag": ("class: 'a:B', suppress_context: maybe", "error.suppress_context"),
    "a cause that is none": ("class: 'a:B', cause: {class: Nope}", "error.cause.class"),
    "a field of nobody": ("class: 'a:B', why: x", "error.why"),
}


@pytest.mark.parametrize("what", ERRORS)
def test_C94_an_error_that_could_not_be_raised_is_found_with_its_field(tmp_path: Path, what: str) -> None:
    spelled, field = ERRORS[what]
    _, (fault,) = faults_of(written(tmp_path / "x.yaml", f"tool: f\nerror: {{{spelled}}}"))
    assert (fault.line, fault.field) == (5, field)


def test_C94_a_stream_is_broken_by_an_error_there_is(tmp_path: Path) -> None:
    stream = "llm: a\nrequest: {{}}\nstream: {{text: a, wire: {{events: '[$text]'}}, broken: {{class: {}}}}}"
    _, (fault,) = faults_of(written(tmp_path / "x.yaml", stream.format("Nope")))
    assert fault.field == "stream.broken.class"
    assert "ReadError" in fault.problem
    assert faults_of(written(tmp_path / "x.yaml", stream.format("ReadError")))[1] == []


def test_C94_long_names_make_no_long_errors(tmp_path: Path) -> None:
    path = written(tmp_path / "x.yaml", f"tool: f\nresult: 1\n? {'k' * 200_000}\n: 1")
    _, (fault,) = faults_of(path)
    assert len(str(fault)) < 2_000
    assert fault.line is not None
    assert str(fault).startswith(f"{path}:{fault.line}: kkk")


def test_a_pattern_is_not_compiled_to_check_it(tmp_path: Path) -> None:
    """A range in capitals and small letters takes 100 times as long to compile as to read."""
    patterns = ", ".join(f'!regex "(?i)[\\\\0-\\U0010ffff]{{{at}}}"' for at in range(1, 1500))
    path = tmp_path / "x.yaml"
    path.write_text(f"stepfork: 1\nname: a\nargs: [{patterns}]\n---\nend: completed\n", "utf-8")
    program = (
        "import sys, resource\nfrom pathlib import Path\nfrom stepfork.cassette.check import faults_of\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (6, 6))\nprint(faults_of(Path(sys.argv[1]))[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr[-500:]


def test_C128_reading_what_extends_each_other_takes_as_long_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`inspect` and `validate` of 2n calls make about twice the steps of n, secrets or none."""
    from stepfork import cli

    def steps(number: int, said: str, command: str) -> int:
        one = "llm: a\nrequest: {messages: [{role: user, content: '" + said + "'}]}\nresponse: {}"
        more = [
            f"llm: a\nextends: 1\nresponse: {{}}\nappend: {{messages: [{{content: '{said} {at}'}}]}}"
            for at in range(number)
        ]
        path = written(tmp_path / f"{number}.yaml", "\n---\n".join([one, *more]))

        def run() -> None:
            with pytest.raises(SystemExit):
                cli.main([command, str(path)])

        return calls_made(run)

    for said in ("hello", "<secret:token:1>"):
        for command in ("inspect", "validate"):
            few = steps(300, said, command)  # more than the 256 that are kept in full
            assert steps(600, said, command) < 2.2 * few
    capsys.readouterr()


FAR = "llm: a\nextends: {back}\nappend: {{messages: [2]}}\nresponse: {{}}"
COSTLY = {
    "requests that reach far back": lambda number: [
        "llm: a\nrequest: {messages: [1]}\nresponse: {}",
        *(FAR.format(back=at + 1) for at in range(number)),
    ],
    "requests that reach too far back": lambda number: [
        "llm: a\nrequest: {messages: [1]}\nresponse: {}",
        *(FAR.format(back=at + 9) for at in range(number)),
    ],
    "changes in many places": lambda number: [
        f"llm: a\nrequest: {{{', '.join(f'k{at}: {{a: [1]}}' for at in range(number))}}}\nresponse: {{}}",
        "llm: a\nextends: 1\nresponse: {}\nrequest:\n" + "".join(f"  k{at}.b: 1\n" for at in range(number)),
    ],
}


@pytest.mark.parametrize("what", COSTLY)
def test_C128_no_step_of_reading_is_made_for_each_pair(tmp_path: Path, what: str) -> None:
    def steps(number: int) -> int:
        path = written(tmp_path / f"{number}.yaml", "\n---\n".join(COSTLY[what](number)))
        return calls_made(lambda: faults_of(path))

    assert steps(600) < 2.2 * steps(300)  # 256 requests are kept in full
