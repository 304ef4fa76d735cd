"""The documents of a finished recording, from those that were written while it grew. Knows no file.

Their order is another one, so requests may be told by other calls; secrets may be known by now that were not;
and only now it is known which values stand more than once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from stepfork.cassette import emitter, question, reader, schema
from stepfork.cassette.bases import Asked, Recent, ask
from stepfork.cassette.shared import Large, large_values, names_of, shorten
from stepfork.cassette.values import TAGS
from stepfork.core.lanes import Mark
from stepfork.core.model import Plain, Recorded
from stepfork.core.redaction import Redactor
from stepfork.session.ticket import Ticket


def final_documents(calls: Iterable[tuple[Ticket, Mark | None]], redactor: Redactor) -> list[str]:
    """The documents of calls that are given in their final order, each before those made inside of it.

    Those that nothing changed are the very text that was written before.
    """
    recent = Recent()
    texts: list[str] = []
    large: list[Sequence[Large]] = []
    for ticket, mark in calls:
        before = recent.line(ticket.depth, "" if mark is None else mark.lane)
        clean = ticket.text is not None and not redactor.mentions(ticket.text, ticket.found)
        asked = ticket.asked
        if ticket.call.kind == "llm":
            if asked is None or not clean or not asked.same_choice(before):
                clean = False
                asked = ask(_args(ticket, redactor), list(before))
            before.appendleft(asked)
        if clean and ticket.text is not None:
            texts.append(schema.marked(ticket.text, ticket.call, mark))
            large.append(ticket.large)
            continue
        document = _document(ticket, mark, asked, redactor)
        texts.append(emitter.emit_document(document))
        large.append(large_values(document, texts[-1]))
    return _sharing(texts, large)


def _document(ticket: Ticket, mark: Mark | None, asked: Asked | None, redactor: Redactor) -> dict[str, Plain]:
    """A call's document, with what is known now."""
    args, extension = _args(ticket, redactor), None if asked is None else asked.extension
    if ticket.text is None:
        call = replace(ticket.call, args=args)
        unfinished = Recorded(call, {}, ticket.depth, unfinished=True, mark=mark)
        return schema.call_document(unfinished, extension)
    text = schema.marked(ticket.text, ticket.call, mark)
    document = redactor.redact(reader.parse_document(text, known_tags=TAGS), keys=False)
    assert isinstance(document, dict)
    return document if asked is None else question.retold(document, args, extension)


def _args(ticket: Ticket, redactor: Redactor) -> Plain:
    args = ticket.call.args
    return args if redactor.count == ticket.found else redactor.redact(args, keys=False)


def _sharing(texts: list[str], large: list[Sequence[Large]]) -> list[str]:
    """The documents with each large value that stands in several places in the first of them only."""
    names = names_of(large)
    told: set[str] = set()
    for at, found in enumerate(large):
        if any(value in names for value, _ in found):
            document = reader.parse_document(texts[at], known_tags=TAGS)
            texts[at] = emitter.emit_document(shorten(document, names, told))
    return texts
