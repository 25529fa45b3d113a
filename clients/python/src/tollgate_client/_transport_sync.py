# Generated from the catalog and the OpenAPI document by `npm run generate`. Do not change it by hand.
# ruff: noqa
"""One call: its key, its deadline, and its repetitions, which are made only where nothing can be paid twice."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import Iterator

import httpx

from ._answer import Answers, M, T, read_list, read_model
from ._errors import refusal_of
from ._pause import pause_sync
from ._policy import Ask, CallOptions, ClientOptions, as_error, backoff, headers_for, wait_of
from ._sse import EventReader, ServerEvent


class Transport:
    def __init__(self, options: ClientOptions, http: httpx.Client | None) -> None:
        self.options = options
        self._http = http or httpx.Client(follow_redirects=False)
        self._owned = http is None

    def close(self) -> None:
        if self._owned:
            self._http.close()

    def send(self, ask: Ask, options: CallOptions | None, stream: bool = False) -> httpx.Response:
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
                response = self._http.send(request, stream=True)
                if hooks.on_answer:
                    hooks.on_answer(ask.method, url, attempt, response)
                if stream and response.is_success:
                    return response
                response.read()
                response.close()
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
            pause_sync(delay)

    def model(self, model: type[M], ask: Ask, options: CallOptions | None = None, data: bool = False) -> M:
        """The answer, or the ``data`` of a native envelope."""
        response = self.send(ask, options)
        value = response.json()
        return read_model(model, value["data"] if data else value, response.headers)

    def list(self, item: type[T], ask: Ask, options: CallOptions | None = None, data: bool = False) -> Answers[T]:
        response = self.send(ask, options)
        value = response.json()
        return read_list(item, value["data"] if data else value, response.headers)

    def events(self, ask: Ask, options: CallOptions | None) -> Iterator[ServerEvent]:
        """What a stream holds, as it comes."""
        response = self.send(ask, options, stream=True)
        reader = EventReader()
        try:
            for text in response.iter_text():
                for event in reader.feed(text):
                    yield event
            for event in reader.end():
                yield event
        except httpx.TransportError as thrown:
            raise as_error(thrown) from thrown
        finally:
            response.close()

    def json_events(self, model: type[M], ask: Ask, options: CallOptions | None) -> Iterator[M]:
        """Each event by its model, up to [DONE]."""
        with closing(self.events(ask, options)) as events:  # type: ignore[type-var]
            for event in events:
                if event.data == "[DONE]":
                    return
                yield read_model(model, json.loads(event.data), {})

    def download(self, url: str) -> bytes:
        base = self.options.base_url
        if url.startswith(f"{base}/"):
            # Its own files are fetched with all the patience of a call; a key goes nowhere else.
            return (self.send(Ask("GET", url[len(base) :]), None)).content
        return (self._http.get(url)).raise_for_status().content
