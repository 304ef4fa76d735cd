"""Every public method of every resource of the installed SDK, found by walking a client. Knows no call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from openai._compat import cached_property
from openai._models import FinalRequestOptions
from openai._resource import AsyncAPIResource, SyncAPIResource

RESOURCES = (SyncAPIResource, AsyncAPIResource)
FILES = ("file", "image", "data", "video", "input_reference", "mask")
WORDS: dict[str, Any] = {
    "messages": [{"role": "user", "content": "x"}],
    "text_format": None,
    "tools": [],
    "files": [],
    "file_ids": ["x"],
    "chunk_size": 1,
    "cast_to": object,
    "page": None,
    "model": "m",
}

SPECIAL: dict[str, dict[str, Any]] = {
    "admin.organization.external_keys.create": {
        "external_id": "x",
        "kms_arn": "x",
        "name": "x",
        "role_arn": "x",
    },
    "audio.voices.create": {"audio_sample": b"x", "consent": "x", "name": "x"},
    "beta.agents.automations.create": {"expression": "x", "name": "x", "target": {}, "timezone": "x"},
    "beta.agents.environments.files.create": {"file_id": "x", "path": "x", "type": "x"},
    "beta.agents.environments.files.prepare": {"files": {"/workspace/x": __file__}},
    "beta.agents.environments.files.prepare_directory": {
        "root": str(Path(__file__).parent),
        "destination": "/workspace/x",
        "include": ["*.py"],
    },
    "beta.agents.environments.files.upload": {"file": b"x", "path": "/workspace/x"},
    "beta.agents.sessions.stream": {"input": "x"},
    "request": {"options": FinalRequestOptions.construct(method="get", url="/frobs")},
    "responses.stream": {"input": "x", "model": "m"},
    "uploads.upload_file_chunked": {"filename": "x", "bytes": 1},
}
"""What methods need that want more than their signatures say."""

NOTHING_SENT = {
    "client.close",
    "client.copy",
    "client.is_closed",
    "client.platform_headers",
    "client.webhooks.unwrap",
    "client.webhooks.verify_signature",
    "client.with_options",
    "client.beta.agents.sessions.artifacts.for_result",
}
"""Methods that send nothing."""

WEBSOCKETS = {
    "client.beta.realtime.connect",
    "client.beta.responses.connect",
    "client.live.connect",
    "client.live.forks.connect",
    "client.live.sideband.connect",
    "client.realtime.connect",
    "client.realtime.translations.connect",
    "client.responses.connect",
}


def methods(client: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Name and method: those of the client, of its resources, of theirs."""
    yield from _of(client, "client")


def _of(owner: Any, path: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(owner):
        if name.startswith(("_", "with_raw_", "with_streaming_")):
            continue
        attribute = inspect.getattr_static(owner, name)
        if isinstance(attribute, RESOURCES):  # old SDKs keep them as they are
            yield from _of(attribute, f"{path}.{name}")
        elif isinstance(attribute, cached_property | property):
            value = getattr(owner, name)
            if isinstance(value, RESOURCES):
                yield from _of(value, f"{path}.{name}")
        elif callable(attribute) and name in dir(type(owner)):
            yield f"{path}.{name}", getattr(owner, name)


def arguments(name: str, method: Callable[..., Any]) -> dict[str, Any]:
    """A value for every argument that must be given."""
    named: dict[str, Any] = {}
    for argument, parameter in inspect.signature(method).parameters.items():
        variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if parameter.default is parameter.empty and not variable:
            named[argument] = _dummy(argument, str(parameter.annotation))
    return named | SPECIAL.get(name.removeprefix("client."), {})


def _dummy(name: str, annotation: str) -> Any:
    if name in WORDS:
        return WORDS[name]
    if name in FILES or "FileTypes" in annotation:
        return b"x"
    if annotation.startswith(("int", "float")):
        return 1
    if annotation.startswith("bool"):
        return True
    if annotation.startswith(("Iterable", "List", "Sequence", "SequenceNotStr")):
        return []
    if "Param" in annotation or annotation.startswith(("Dict", "Mapping", "dict")):
        return {}
    return "x"
