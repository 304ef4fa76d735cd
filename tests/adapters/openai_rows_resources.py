"""Rows of the OpenAI table: every resource that is neither chat nor Responses."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from adapters.openai_rows import Go, M, headers, row, seen
from support.openai_answers import SOUND


async def _embed(go: Go, **more: Any) -> Any:
    answer = await go.wait(go.client.embeddings.create(model="e", input=["a", "b"], **more))
    return answer.data[0].embedding, seen(answer)


@row("embeddings")
async def embeddings(go: Go) -> Any:
    """as the SDK asks for them"""
    vector, dumped = await _embed(go)
    assert vector[:3] == [0.5, -1.25, 3.0]
    return [round(value, 6) for value in vector], dumped[2]


@row("embeddings")
async def embeddings_float(go: Go) -> Any:
    """float"""
    return await _embed(go, encoding_format="float")


@row("embeddings")
async def embeddings_base64(go: Go) -> Any:
    """base64"""
    vector, dumped = await _embed(go, encoding_format="base64")
    assert isinstance(vector, str)
    return vector, dumped


@row("resources")
async def moderations(go: Go) -> Any:
    """moderations"""
    return seen(await go.wait(go.client.moderations.create(input="x")))


@row("resources")
async def completions(go: Go) -> Any:
    """completions, whole and streamed"""
    create = go.client.completions.create
    whole = await go.wait(create(model="m", prompt="a"))
    stream = await go.wait(create(model="m", prompt="a", stream=True))
    return seen(whole), [seen(chunk) for chunk in await go.all(stream)]


@row("resources")
async def images(go: Go) -> Any:
    """images: generate, edit (upload)"""
    images = go.client.images
    made = await go.wait(images.generate(prompt="a cat", model="i"))
    edited = await go.wait(images.edit(image=("a.png", b"\x89PNG\r\n\x1a\n\x00", "image/png"), prompt="hat"))
    return seen(made), seen(edited)


@row("resources")
async def speech(go: Go) -> Any:
    """audio speech: bytes"""
    speech = go.client.audio.speech
    asked: Any = {"model": "t", "voice": "alloy", "input": "hi"}
    answer = await go.wait(speech.create(**asked))
    read = await go.wait(answer.aread() if go.is_async else answer.read())
    assert read == SOUND
    async with go.within(speech.with_streaming_response.create(**asked)) as streamed:
        pieces = b"".join(await go.all(streamed.iter_bytes()))
    assert pieces == SOUND
    return type(answer).__name__, headers(answer.response), read, pieces


@row("resources")
async def speech_cut(go: Go) -> Any:
    """audio speech, not read to its end"""
    manager = go.client.audio.speech.with_streaming_response.create(model="t", voice="alloy", input="hi")
    async with go.within(manager) as streamed:
        return headers(streamed), await go.next(streamed.iter_bytes(16))


@row("resources")
async def transcription(go: Go) -> Any:
    """audio transcription (upload)"""
    upload = ("a.mp3", io.BytesIO(SOUND), "audio/mpeg")
    transcriptions = go.client.audio.transcriptions
    return seen(await go.wait(transcriptions.create(model="w", file=upload, prompt="grüß", temperature=0.5)))


@row("resources")
async def files(go: Go) -> Any:
    """files: upload of bytes, a tuple, a path; content; delete"""
    files = go.client.files
    path = Path(__file__)
    uploads: list[Any] = [b"{}\n", ("f.jsonl", b"{}\n"), path, io.BytesIO(b"\xff\x00")]
    made = [seen(await go.wait(files.create(file=upload, purpose="batch"))) for upload in uploads]
    content = await go.wait(files.content("file-1"))
    return made, content.content, seen(await go.wait(files.delete("file-1")))


@row("resources")
async def vector_stores(go: Go) -> Any:
    """vector stores, polled without waiting on replay"""
    client = go.client
    stores = client.vector_stores if hasattr(client, "vector_stores") else client.beta.vector_stores
    store = await go.wait(stores.create(name="docs"))
    pause = {} if go.live else {"poll_interval_ms": 1_000_000}
    file = await go.wait(stores.files.create_and_poll("file-1", vector_store_id=store.id, **pause))
    assert file.status == "completed"
    return seen(store), seen(file)


@row("resources")
async def batches(go: Go) -> Any:
    """batches"""
    batches = go.client.batches
    asked: Any = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
    made = await go.wait(batches.create(input_file_id="file-1", **asked))
    return seen(made), seen(await go.wait(batches.retrieve("batch_1")))


@row("resources")
async def fine_tuning(go: Go) -> Any:
    """fine-tuning"""
    jobs = go.client.fine_tuning.jobs
    made = await go.wait(jobs.create(model="m", training_file="file-1"))
    return seen(made), [seen(job) for job in await go.all(jobs.list(limit=2))]


@row("resources")
async def models(go: Go) -> Any:
    """models: list, iteration, retrieve"""
    models = go.client.models
    page = await go.wait(models.list())
    each = [seen(model) for model in await go.all(models.list())]
    return seen(page), each, seen(await go.wait(models.retrieve("ft:m:org::1")))


@row("resources")
async def pages(go: Go) -> Any:
    """pagination: iteration, `iter_pages`, `get_next_page`"""
    batches = go.client.batches
    every = [batch.id for batch in await go.all(batches.list(limit=2))]
    assert every == ["x1", "x2", "x3", "x4"]
    first = await go.wait(batches.list(limit=2))
    second = await go.wait(first.get_next_page())
    pages = [len(page.data) for page in await go.all((await go.wait(batches.list(limit=2))).iter_pages())]
    return every, seen(first), seen(second), pages, first.has_next_page()


@row("resources")
async def post(go: Go) -> Any:
    """`client.post`"""
    body = {"model": "m", "messages": M}
    return await go.wait(go.client.post("/chat/completions", cast_to=object, body=body))


@row("resources")
async def unknown(go: Go) -> Any:
    """unknown endpoints: get, post, put, patch, delete"""
    client = go.client
    answers = [await go.wait(client.get("/frobs/7", cast_to=object, options={"params": {"a": "b"}}))]
    for verb in (client.post, client.put, client.patch, client.delete):
        answers.append(await go.wait(verb("/frobs/7/turn", cast_to=object, body={"x": [1, None]})))
    return answers


@row("resources")
async def redirects(go: Go) -> Any:
    """redirects"""
    return await go.wait(go.client.get("/moved", cast_to=object))
