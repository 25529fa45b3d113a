"""One call: its key, its deadline, and its repetitions, which are made only where nothing can be paid twice."""

from __future__ import annotations

import json
import time
from contextlib import aclosing
from typing import AsyncIterator

import httpx

from ._answer import Answers, M, T, read_list, read_model
from ._errors import refusal_of
from ._pause import pause_async
from ._policy import Ask, CallOptions, ClientOptions, as_error, backoff, headers_for, wait_of
from ._sse import EventReader, ServerEvent


class AsyncTransport:
    def __init__(self, options: ClientOptions, http: httpx.AsyncClient | None) -> None:
        self.options = options
        self._http = http or httpx.AsyncClient(follow_redirects=False)
        self._owned = http is None

    async def close(self) -> None:
        if self._owned:
            await self._http.aclose()

    async def send(self, ask: Ask, options: CallOptions | None, stream: bool = False) -> httpx.Response:
        """A good answer, whole or, of a stream, at its beginning."""
        call, client = options or CallOptions(), self.options
        until = time.monotonic() + (client.deadline if call.deadline is None else call.deadline)
        retries_max = client.retries_max if call.retries_max is None else call.retries_max
        headers = headers_for(ask, client, call)
        safe = "idempotency-key" in headers or not ask.paid
        url, hooks = client.base_url + ask.path, client.hooks
        attempt = failures = 0
        while True:
            attempt += 1
            timeout = max(0.001, min(call.timeout or client.timeout, until - time.monotonic()))
            request = self._http.build_request(
                ask.method, url, params=ask.query, json=ask.body, headers=headers, timeout=timeout
            )
            if hooks.on_request:
                hooks.on_request(ask.method, url, attempt)
            response: httpx.Response | None = None
            try:
                response = await self._http.send(request, stream=True)
                if hooks.on_answer:
                    hooks.on_answer(ask.method, url, attempt, response)
                if stream and response.is_success:
                    return response
                await response.aread()
                await response.aclose()
                if response.is_success:
                    return response
                error: Exception = refusal_of(response.status_code, response.headers, response.text)
            except httpx.TransportError as thrown:
                error, response = thrown, None
            wait = wait_of(error, response, safe)
            failures += 1 if wait and wait.counts else 0
            told = as_error(error)
            if wait is None or failures > retries_max:
                raise told from error
            delay = backoff(max(1, failures)) if wait.seconds is None else wait.seconds
            if time.monotonic() + delay >= until:
                raise told from error
            if hooks.on_retry:
                hooks.on_retry(ask.method, url, attempt, delay, told)  # type: ignore[arg-type]
            await pause_async(delay)

    async def model(self, model: type[M], ask: Ask, options: CallOptions | None = None, data: bool = False) -> M:
        """The answer, or the ``data`` of a native envelope."""
        response = await self.send(ask, options)
        value = response.json()
        return read_model(model, value["data"] if data else value, response.headers)

    async def list(self, item: type[T], ask: Ask, options: CallOptions | None = None, data: bool = False) -> Answers[T]:
        response = await self.send(ask, options)
        value = response.json()
        return read_list(item, value["data"] if data else value, response.headers)

    async def events(self, ask: Ask, options: CallOptions | None) -> AsyncIterator[ServerEvent]:
        """What a stream holds, as it comes."""
        response = await self.send(ask, options, stream=True)
        reader = EventReader()
        try:
            async for text in response.aiter_text():
                for event in reader.feed(text):
                    yield event
            for event in reader.end():
                yield event
        except httpx.TransportError as thrown:
            raise as_error(thrown) from thrown
        finally:
            await response.aclose()

    async def json_events(self, model: type[M], ask: Ask, options: CallOptions | None) -> AsyncIterator[M]:
        """Each event by its model, up to [DONE]."""
        async with aclosing(self.events(ask, options)) as events:  # type: ignore[type-var]
            async for event in events:
                if event.data == "[DONE]":
                    return
                yield read_model(model, json.loads(event.data), {})

    async def download(self, url: str) -> bytes:
        base = self.options.base_url
        if url.startswith(f"{base}/"):
            # Its own files are fetched with all the patience of a call; a key goes nowhere else.
            return (await self.send(Ask("GET", url[len(base) :]), None)).content
        return (await self._http.get(url)).raise_for_status().content
