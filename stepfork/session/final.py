"""The documents of a finished recording, from those that were written while it grew. Knows no file.

Their order is another one, so requests may be told by other calls; secrets may be known by now that were not;
and only now it is known which values stand more than once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stepfork.cassette import emitter, frame, message_contents, question, reader, schema, stream
from stepfork.cassette.bases import Asked, Recent, ask
from stepfork.cassette.shared import Large, large_values, names_of, shorten
from stepfork.cassette.stream.pieces import joined
from stepfork.cassette.values import TAGS
from stepfork.core.changed_texts import changed
from stepfork.core.directories import AS_THEY_STAND, Directories
from stepfork.core.lanes import Mark
from stepfork.core.model import Plain, Recorded
from stepfork.core.placeholder_texts import PLACEHOLDER
from stepfork.core.redaction import Keys, Redactor
from stepfork.session.ticket import Ticket


def question_of(ticket: Ticket) -> Plain:
    """What a call asks, without what it has from the one it extends."""
    extension = None if ticket.asked is None else ticket.asked.extension
    asked: Plain = ticket.call.args
    if extension is not None:
        asked = [extension.changed, dict(extension.append)]
    return [ticket.call.target, asked]


def told_value(value: Plain, told: Mapping[str, str]) -> Plain:
    """A value with these placeholders replaced by what they stand for."""
    return changed(value, lambda text: PLACEHOLDER.sub(lambda found: told.get(found[0], found[0]), text))


def final_documents(
    calls: Iterable[tuple[Ticket, Mark | None]], redactor: Redactor, told: Mapping[str, str]
) -> list[str]:
    """The documents of calls that are given in their final order, each before those made inside of it.

    What turned out to be no secret (`told`, by its placeholder) is in clear. Those that nothing changed are
    the very text that was written before.
    """
    recent = Recent()
    texts: list[str] = []
    large: list[Sequence[Large]] = []
    for ticket, mark in calls:
        before = recent.line(ticket.depth, "" if mark is None else mark.lane)
        clean = ticket.text is not None and not (_may_mention(ticket, redactor) or told)
        asked = ticket.asked
        if ticket.call.kind == "llm":
            if asked is None or not clean or not asked.same_choice(before):
                clean = False
                asked = ask(_args(ticket, redactor, told), list(before))
            before.appendleft(asked)
        if clean and ticket.text is not None:
            texts.append(schema.marked(ticket.text, ticket.call, mark))
            large.append(ticket.large)
            continue
        document = _document(ticket, mark, asked, redactor, told)
        texts.append(emitter.emit_document(document))
        large.append(large_values(document, texts[-1]))
    return _sharing(texts, large)


def _document(
    ticket: Ticket, mark: Mark | None, asked: Asked | None, redactor: Redactor, told: Mapping[str, str]
) -> dict[str, Plain]:
    """A call's document, with what is known now."""
    args, extension = _args(ticket, redactor, told), None if asked is None else asked.extension
    if ticket.text is None:
        call = replace(ticket.call, args=args, target=redacted_fields(ticket.call.target, redactor))
        unfinished = Recorded(call, {}, ticket.depth, unfinished=True, mark=mark)
        return schema.call_document(unfinished, extension)
    text = schema.marked(ticket.text, ticket.call, mark)
    document = _redacted_document(reader.parse_document(text, known_tags=TAGS), redactor, told)
    held = document.get("stream")
    if isinstance(held, dict):
        document["stream"] = redacted_stream(held, redactor)
    return document if asked is None else message_contents.marked(question.retold(document, args, extension))


def _redacted_document(
    document: dict[str, Plain], redactor: Redactor, told: Mapping[str, str]
) -> dict[str, Plain]:
    """A document without the secrets that are known by now; what names its call stays."""
    named = {key: document[key] for key in ("tool", "llm") if key in document}
    fields = {key: value for key, value in document.items() if key not in named}
    redacted = redacted_fields if "tool" in named else redacted_answer
    shown = {key: told_value(value, told) for key, value in redacted(fields, redactor).items()} | named
    return {key: shown[key] for key in document}


def _may_mention(ticket: Ticket, redactor: Redactor) -> bool:
    """Whether the text of a call may hold what became known as a secret after it was made."""
    if redactor.count == ticket.found:
        return False
    return ticket.in_pieces or redactor.mentions(ticket.text or "", ticket.found)


def redacted_header(header: frame.Header, redactor: Redactor, *, raw: bool = False) -> frame.Header:
    """A header without the secrets that are known by now."""
    env = redacted_fields(dict(header.env), redactor, raw=raw)
    return replace(
        header,
        name=redactor.redact_text(header.name),
        args=redactor.redact(header.args, raw=raw),
        env={key: str(value) for key, value in env.items()},
    )


def redacted_fields(
    fields: dict[str, Plain], redactor: Redactor, keys: Keys = Keys.ALL, *, raw: bool = False
) -> dict[str, Plain]:
    """Fields with their secrets replaced; `raw` as `Redactor.redact` has it."""
    redacted = redactor.redact(fields, keys, raw=raw)
    assert isinstance(redacted, dict)
    return redacted


def redacted_answer(fields: dict[str, Plain], redactor: Redactor, *, raw: bool = False) -> dict[str, Plain]:
    """The fields of a document that say what an SDK was answered; a ``text`` is all of an answer.

    `raw` as `Redactor.redact` has it.
    """
    text = redactor.redact(fields.get("text"), Keys.WIRE, raw=raw)
    told = {**fields, "text": ""} if "text" in fields else fields
    shown = redacted_fields(told, redactor, Keys.ANSWER, raw=raw)
    return {**shown, "text": text} if "text" in fields else shown


def redacted_outcome(
    kind: str, outcome: dict[str, Plain], redactor: Redactor, directories: Directories = AS_THEY_STAND
) -> dict[str, Plain]:
    """How a live call ended, with its secrets replaced."""
    if kind == "tool":
        return redacted_fields(outcome, redactor, raw=True)
    redacted = redacted_answer(outcome, redactor, raw=True)
    held = redacted.get("stream")
    if isinstance(held, dict):
        return {**redacted, "stream": redacted_stream(held, redactor, directories)}
    return redacted


def may_hide_pieces(held: Plain) -> bool:
    """Whether a stream has texts in pieces that do not stand joined in its document."""
    if not isinstance(held, dict):
        return False
    wire = held.get("wire")
    return "raw" in held or (isinstance(wire, dict) and ("series" in wire or "texts" in wire))


def redacted_stream(
    held: dict[str, Plain], redactor: Redactor, directories: Directories = AS_THEY_STAND
) -> dict[str, Plain]:
    """A stream without the secrets that only its pieces, joined, give away.

    Pieces that name a directory only when they are joined are joined.
    """

    def is_replaced(text: str) -> bool:
        return directories.normalise_text(redactor.redact_text(text)) != text

    whole = joined(stream.decode(held), is_replaced) if may_hide_pieces(held) else None
    if whole is None:
        return held
    ends: dict[str, Plain] = {key: held[key] for key in ("broken", "closed", "cancelled") if key in held}
    return redacted_fields({**stream.encode(whole), **ends}, redactor, Keys.ANSWER)


def _args(ticket: Ticket, redactor: Redactor, told: Mapping[str, str]) -> Plain:
    args = ticket.call.args
    args = args if redactor.count == ticket.found else redactor.redact(args, Keys.ANSWER)
    return told_value(args, told) if told else args


def _sharing(texts: list[str], large: list[Sequence[Large]]) -> list[str]:
    """The documents with each large value that stands in several places in the first of them only."""
    names = names_of(large)
    told: set[str] = set()
    for at, found in enumerate(large):
        if any(value in names for value, _ in found):
            document = reader.parse_document(texts[at], known_tags=TAGS)
            texts[at] = emitter.emit_document(shorten(document, names, told))
    return texts
