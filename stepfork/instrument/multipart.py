"""A multipart body as plain values: its parts without the boundary, files by their digest. Knows no request.

Fields of text stand as they are; files stand by name, type, size and SHA-256 (FIPS 180-4), so that an
upload of any size takes one line and still matches only itself.
"""

from __future__ import annotations

import hashlib
import re
from email.message import Message
from typing import Final

from stepfork.core.model import Plain, Tagged

TAG: Final = "multipart"
_BOUNDARY: Final = re.compile(r"boundary=(?:\"([^\"]+)\"|([^\s;]+))", re.IGNORECASE)


def parts_of(content: bytes, content_type: str) -> Tagged | None:
    r"""The parts of a body, or None if it is not well formed.

    >>> body = b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b--\r\n'
    >>> parts_of(body, "multipart/form-data; boundary=b")
    Tagged(tag='multipart', value=[{'name': 'purpose', 'text': 'batch'}])
    """
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        return None
    mark = b"--" + (boundary[1] or boundary[2]).encode("latin-1")
    pieces = (b"\r\n" + content).split(b"\r\n" + mark)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        return None
    parts: list[Plain] = []
    for piece in pieces[1:-1]:
        head, gap, data = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        if not gap:
            return None
        parts.append(_part(head.decode("utf-8", "replace"), data))
    return Tagged(TAG, parts)


def _part(head: str, data: bytes) -> Plain:
    headers = Message()
    for line in head.split("\r\n"):
        key, _, value = line.partition(":")
        headers[key.strip()] = value.strip()
    name, file = (headers.get_param(key, header="content-disposition") for key in ("name", "filename"))
    part: dict[str, Plain] = {"name": str(name)}
    if file is None:
        try:
            return part | {"text": data.decode("utf-8")}
        except UnicodeDecodeError:
            pass
    else:
        part["file"] = str(file)
    if kind := headers["content-type"]:
        part["type"] = str(kind)
    part["size"] = len(data)
    part["sha256"] = hashlib.sha256(data).hexdigest()
    return part
