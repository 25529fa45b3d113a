"""What the two clients agree on: options, what may be repeated, and how long to wait."""

from __future__ import annotations

import os
import random
import uuid
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Callable, Mapping

import httpx

from ._errors import ConnectionFailedError, DeadlineError, TollgateError, seconds_of

RETRIED = (408, 429, 502, 503, 504)
DELAY_SECONDS = 0.5
DELAY_SECONDS_MAX = 8.0


@dataclass(frozen=True)
class Hooks:
    """Told of every attempt, for logs. The key is in none of it."""

    on_request: Callable[[str, str, int], None] | None = None
    on_answer: Callable[[str, str, int, httpx.Response], None] | None = None
    on_retry: Callable[[str, str, int, float, TollgateError], None] | None = None


@dataclass(frozen=True)
class CallOptions:
    """For one call; what is None is as the client has it."""

    #: Seconds without a byte.
    timeout: float | None = None
    #: Seconds for a call with all its repetitions.
    deadline: float | None = None
    retries_max: int | None = None
    #: Of a paid POST: one is made where none is given. Sent again within a day, it is answered with the same result.
    idempotency_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClientOptions:
    api_key: str
    base_url: str
    timeout: float
    deadline: float
    retries_max: int
    headers: Mapping[str, str]
    hooks: Hooks


@dataclass(frozen=True)
class Ask:
    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: Any = None
    paid: bool = False


@dataclass(frozen=True)
class Wait:
    """Before another attempt. Those that only wait for an earlier one do not count."""

    seconds: float | None
    counts: bool


def read_options(
    api_key: str | None, base_url: str | None, timeout: float, deadline: float, retries_max: int, **rest: Any
) -> ClientOptions:
    key = api_key or os.environ.get("TOLLGATE_KEY")
    if not key:
        raise TollgateError("There is no API key: give api_key, or set TOLLGATE_KEY.")
    url = (base_url or os.environ.get("TOLLGATE_URL") or "http://127.0.0.1:8080").rstrip("/")
    return ClientOptions(key, url, timeout, deadline, retries_max, rest["headers"] or {}, rest["hooks"] or Hooks())


def headers_for(ask: Ask, client: ClientOptions, call: CallOptions) -> dict[str, str]:
    headers = {"authorization": f"Bearer {client.api_key}", **client.headers, **call.headers}
    if ask.paid and ask.method == "POST":
        headers.setdefault("idempotency-key", call.idempotency_key or uuid.uuid4().hex)
    return headers


def wait_of(error: Exception, response: httpx.Response | None, safe: bool) -> Wait | None:
    """None: there must be no other attempt."""
    if response is not None:
        seconds = seconds_of(response.headers)
        if response.headers.get("x-should-retry") == "false":
            return None
        # The same request still runs, or ran in a process that died: its result, or its turn, will come.
        if response.status_code == 409 and seconds is not None:
            return Wait(seconds, False)
        again = response.status_code in RETRIED or (response.status_code == 500 and safe)
        return Wait(seconds, True) if again else None
    # An answer that was lost may have been paid for: it is asked for again only where that costs nothing.
    never_left = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
    return Wait(None, True) if isinstance(error, httpx.TransportError) and (safe or never_left) else None


def backoff(failures: int) -> float:
    """Half of it is chance, so that those who failed together do not come back together."""
    most: float = min(DELAY_SECONDS_MAX, DELAY_SECONDS * 2 ** (failures - 1))
    return most / 2 + random.random() * most / 2


def as_error(error: Exception) -> Exception:
    if isinstance(error, httpx.TimeoutException):
        return DeadlineError(f"No answer came in time: {error!r}")
    if isinstance(error, httpx.TransportError):
        return ConnectionFailedError(f"The gateway could not be asked, or its answer did not arrive: {error!r}")
    return error


def query_of(params: Mapping[str, Any], countries: Mapping[str, int]) -> dict[str, str]:
    """Parameters as they stand in an address: dates, lists, countries and arrays have other forms there."""
    return {name: _text(name, value, countries) for name, value in params.items() if value is not None}


def _text(name: str, value: Any, countries: Mapping[str, int]) -> str:
    if name == "country":
        return "999" if value == "world" else str(countries.get(str(value).lower(), value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ") if name.endswith("_time") else value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        import json

        return json.dumps(value) if name.endswith("Json") else ",".join(map(str, value))
    return str(value)
