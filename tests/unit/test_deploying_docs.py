"""The servers that docs/deploying.md shows answer requests."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ..harness import needs_package

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "deploying.md").read_text()
FASTAPI, WSGI = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
X = np.ones((3, 784), np.float32)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a model of the shape that the page speaks of."""
    folder = tmp_path_factory.mktemp("served")
    b = sw.Builder()
    weight = np.arange(7840, dtype=np.float32).reshape(10, 784)
    b.output(b.dense(b.input("x", ("batch", 784)), weight), name="y")
    sw.compile(b.module(), threads=1).save(folder / "model.stepwell")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


def application(text: str) -> Any:
    names: dict[str, Any] = {"__name__": "app"}
    exec(compile(text, "deploying.md", "exec"), names)
    return names["app"]


def test_an_application_of_wsgi(served: Path) -> None:
    app, statuses = application(WSGI), list[str]()

    def ask(body: bytes) -> bytes:
        environ = {"CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
        return b"".join(app(environ, lambda status, headers: statuses.append(status)))

    for count in (3, 1, 0):
        found = np.frombuffer(ask(X[:count].tobytes()), np.float32).reshape(-1, 10)
        np.testing.assert_array_equal(found, sw.load("model.stepwell")(X[:count]))
    assert b"cannot reshape" in ask(X.tobytes()[:-4])
    assert statuses == [*["200 OK"] * 3, "422 Unprocessable Content"]


async def asked(app: Any, body: bytes) -> tuple[int, bytes]:
    """The status and the body of the response of an ASGI application."""
    sent: list[Mapping[str, Any]] = []

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/predict", "headers": []}
    await app(scope | {"query_string": b""}, receive, send)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


@needs_package("fastapi")
def test_an_application_of_fastapi(served: Path) -> None:
    app = application(FASTAPI)
    for count in (3, 1, 0):
        status, body = asyncio.run(asked(app, X[:count].tobytes()))
        found = np.frombuffer(body, np.float32).reshape(-1, 10)
        assert status == 200
        np.testing.assert_array_equal(found, sw.load("model.stepwell")(X[:count]))
    status, body = asyncio.run(asked(app, X.tobytes()[:-4]))
    assert (status, b"not made of rows" in body) == (422, True)
