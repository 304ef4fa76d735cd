"""Rows of the OpenAI table: every sort of client, and every way to one."""

from __future__ import annotations

import importlib
from typing import Any

import openai
from adapters.openai_rows import Go, M, forget_module_client, http_library, row, seen
from pydantic import BaseModel


async def ask(go: Go, client: Any, **more: Any) -> Any:
    return seen(await go.wait(client.chat.completions.create(**{"model": "m", "messages": M, **more})))


def _azure(go: Go, **more: Any) -> Any:
    kind = go.pick(openai.AzureOpenAI, openai.AsyncAzureOpenAI)
    return go.make(kind, azure_endpoint=go.url, api_version="2024-10-21", **more)


@row("clients")
async def azure(go: Go) -> Any:
    """AzureOpenAI with a key"""
    client = _azure(go)
    return await ask(go, client), await ask(go, client, model="other")


@row("clients")
async def azure_token(go: Go) -> Any:
    """AzureOpenAI with an AD token provider, not asked on replay"""
    asked: list[int] = []

    def provide() -> str:
        asked.append(1)
        return "ad-token"

    async def provide_later() -> str:
        return provide()

    answer = await ask(go, _azure(go, azure_ad_token_provider=go.pick(provide, provide_later)))
    assert bool(asked) == go.live
    return answer


@row("clients")
async def azure_deployment(go: Go) -> Any:
    """AzureOpenAI with a deployment"""
    return await ask(go, _azure(go, azure_deployment="dep"))


@row("clients")
async def base_url(go: Go) -> Any:
    """custom `base_url`"""
    proxied = await ask(go, go.make(base_url=f"{go.url}/proxy/v1/"))
    bare = await go.wait(go.make(base_url=go.url).get("/elsewhere/frobs", cast_to=object))
    return proxied, bare


@row("clients")
async def default_query(go: Go) -> Any:
    """`default_query`"""
    client = go.make(default_query={"tenant": "a b"})
    return await go.wait(client.get("/frobs", cast_to=object)), await ask(go, client)


@row("clients")
async def extras(go: Go) -> Any:
    """`extra_headers`, `extra_query`, `extra_body`, `timeout`"""
    more = {"extra_query": {"q": "1"}, "extra_body": {"top_k": 3, "deep": {"a": [1]}}, "timeout": 9}
    return await ask(go, go.client, extra_headers={"x-trace": "t" if go.live else "u"}, **more)


def _http(go: Go, module: str) -> Any:
    library = importlib.import_module(module)
    return go.pick(library.Client, library.AsyncClient)(headers={"x-own": "1"})


@row("clients")
async def own_http_client(go: Go) -> Any:
    """own `http_client`"""
    return await ask(go, go.make(http_client=_http(go, http_library(go.early).__name__)))


@row("clients", "3.0", needs="httpx")
async def legacy_http_client(go: Go) -> Any:
    """own `http_client` of the older httpx"""
    client = go.make(http_client=_http(go, "httpx"))
    stream = await go.wait(client.chat.completions.create(model="m", messages=M, stream=True))
    chunks = [seen(chunk) for chunk in await go.all(stream)]
    error = await go.raised(lambda: client.chat.completions.create(model="status-404", messages=M))
    raw = await go.wait(client.chat.completions.with_raw_response.create(model="m", messages=M))
    library = type(raw.http_response).__module__.partition(".")[0]
    assert library == "httpx"
    return await ask(go, client), chunks, error, library


@row("clients")
async def with_options(go: Go) -> Any:
    """`with_options`, `copy`"""
    client = go.client
    return await ask(go, client.with_options(timeout=5)), await ask(go, client.copy(max_retries=1))


@row("clients")
async def subclass(go: Go) -> Any:
    """a subclass with methods of its own"""

    class Mine(go.pick(openai.OpenAI, openai.AsyncOpenAI)):  # type: ignore[misc]
        def _prepare_options(self, options: Any) -> Any:
            return super()._prepare_options(options)

        def request(self, *args: Any, **kwargs: Any) -> Any:
            return super().request(*args, **kwargs)

    return await ask(go, go.make(Mine))


@row("clients", kinds=("sync",))
async def module_level(go: Go) -> Any:
    """the module-level client"""
    openai.api_key, openai.base_url = go.key, f"{go.url}/v1/"
    try:
        answer = await ask(go, openai)
        stream = openai.chat.completions.create(model="m", messages=M, stream=True)
        return answer, [seen(chunk) for chunk in stream]
    finally:
        forget_module_client()


@row("clients")
async def early_client(go: Go) -> Any:
    """a client made before the patch"""
    return await ask(go, go.early)


@row("clients")
async def early_method(go: Go) -> Any:
    """a client whose resources were used before the patch"""
    create = go.early_create
    return seen(await go.wait(create(model="m", messages=M)))


@row("clients", "1.106")
async def key_provider(go: Go) -> Any:
    """a key provider, not asked on replay"""
    asked: list[int] = []

    def provide() -> str:
        asked.append(1)
        return "sk-provided"

    async def provide_later() -> str:
        return provide()

    answer = await ask(go, go.make(api_key=go.pick(provide, provide_later)))
    assert bool(asked) == go.live
    return answer


@row("clients")
async def strict_validation(go: Go) -> Any:
    """strict response validation"""
    client = go.make(_strict_response_validation=True)
    completions = client.chat.completions
    return await go.raised(lambda: completions.create(model="odd", messages=M)), await ask(go, client)


@row("clients")
async def own_model(go: Go) -> Any:
    """an own model as `cast_to`"""

    class Mine(BaseModel):
        id: str

    base = importlib.import_module("openai").BaseModel
    own = type("Own", (base,), {"__annotations__": {"id": str}})
    body = {"model": "m", "messages": M}
    answer = await go.wait(go.client.post("/chat/completions", cast_to=own, body=body))
    return type(answer).__name__, answer.id
