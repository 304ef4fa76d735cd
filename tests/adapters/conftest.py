"""What the adapter tests share: clients that are made quickly, and none that is left over."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest
from adapters.openai_rows import forget_module_client


@pytest.fixture(scope="session", autouse=True)
def no_authorities() -> Iterator[None]:
    """Every client loads all certificate authorities when it is made; these tests make a thousand."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("load_verify_locations", "load_default_certs", "set_default_verify_paths"):
            patch.setattr(ssl.SSLContext, name, lambda *_, **__: None)
        yield


@pytest.fixture(autouse=True)
def no_module_client() -> Iterator[None]:
    """No test finds the module-level client of another."""
    yield
    forget_module_client()
