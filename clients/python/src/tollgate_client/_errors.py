"""What can go wrong, as classes: a program asks by class, a person reads the message."""

from __future__ import annotations

import json
from typing import Any, Mapping


class TollgateError(Exception):
    """Every error of this package. Of a refusal it says what the gateway said."""

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        status: int = 0,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        #: The contract's number, such as 40000; 0 where the gateway did not answer.
        self.code = code
        #: The HTTP status; 0 where there is none.
        self.status = status
        self.request_id = request_id
        #: Seconds until trying again makes sense.
        self.retry_after = retry_after


class InvalidRequestError(TollgateError):
    """400, 413 or 422: the request itself is wrong."""


class AuthenticationError(TollgateError):
    """401: the key is missing, mistyped, revoked or expired."""


class AccessDeniedError(TollgateError):
    """403: the key may not do that."""


class NotFoundError(TollgateError):
    """404: no such model, job, user or path."""


class ConflictError(TollgateError):
    """409: it conflicts with an earlier request."""


class RateLimitError(TollgateError):
    """429: a limit is reached."""


class ServerError(TollgateError):
    """5xx: the gateway or a vendor failed."""


class ConnectionFailedError(TollgateError):
    """No answer came, or half of one."""


class DeadlineError(TollgateError):
    """The time that was given is over."""


class WebhookError(TollgateError):
    """A webhook is not what the gateway sent, or it is too old."""


class InsufficientCreditsError(TollgateError):
    """402: the credits do not cover the call. Nothing was charged."""

    #: Credits that the call needs, and credits that are there, as decimals.
    required: str | None = None
    available: str | None = None


class JobFailedError(TollgateError):
    """A job ended without a result. Nothing was charged for it."""

    def __init__(self, message: str, job_id: str) -> None:
        super().__init__(message)
        self.job_id = job_id


_BY_STATUS: dict[int, type[TollgateError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    402: InsufficientCreditsError,
    403: AccessDeniedError,
    404: NotFoundError,
    409: ConflictError,
    413: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitError,
}


def seconds_of(headers: Mapping[str, str]) -> float | None:
    """How long to wait, as the answer says."""
    try:
        if "retry-after-ms" in headers:
            return float(headers["retry-after-ms"]) / 1000
        return float(headers["retry-after"]) if "retry-after" in headers else None
    except ValueError:
        return None


def refusal_of(status: int, headers: Mapping[str, str], text: str) -> TollgateError:
    """The error in an answer, whichever of the contract's bodies it has."""
    body: dict[str, Any] = {}
    try:
        read = json.loads(text)
        body = read if isinstance(read, dict) else {}
    except ValueError:
        pass  # Something between us and the gateway answered in its own words.
    nested = body.get("error")
    inner: dict[str, Any] = nested if isinstance(nested, dict) else {}
    code = next((value for value in (body.get("code"), inner.get("code")) if isinstance(value, int)), 0)
    said = next((value for value in (body.get("message"), inner.get("message")) if isinstance(value, str)), None)
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else TollgateError)
    error = kind(
        said or f"The gateway answered {status}.",
        code=code,
        status=status,
        request_id=headers.get("x-request-id"),
        retry_after=seconds_of(headers),
    )
    if isinstance(error, InsufficientCreditsError):
        error.required = headers.get("x-tollgate-required")
        error.available = headers.get("x-tollgate-available")
    return error
