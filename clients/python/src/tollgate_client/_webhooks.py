"""Whether a webhook is genuine: Standard Webhooks, HMAC-SHA256 over id, time and the raw body."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import Literal, Mapping

from ._answer import Part
from ._errors import WebhookError
from ._generated import Job

_AGE_SECONDS_MAX = 300


class WebhookEvent(Part):
    type: Literal["job.completed", "job.failed", "job.cancelled"]
    timestamp: str
    data: Job


def verify_webhook(body: str | bytes, headers: Mapping[str, str], secret: str) -> WebhookEvent:
    """The event of a webhook, if its signature is right and not older than five minutes.

    ``body`` is the raw body, before any parsing; ``secret`` is the ``whsec_…`` of the account.
    """
    raw = body.encode() if isinstance(body, str) else body
    given = {name.lower(): value for name, value in headers.items()}
    seconds = given.get("webhook-timestamp", "")
    if not seconds.isdigit() or abs(time.time() - int(seconds)) > _AGE_SECONDS_MAX:
        raise WebhookError("The webhook is too old, or its time is missing.")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{given.get('webhook-id', '')}.{seconds}.".encode() + raw
    right = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    for part in given.get("webhook-signature", "").split():
        version, _, signature = part.partition(",")
        if version == "v1" and hmac.compare_digest(signature.encode(), right.encode()):
            return WebhookEvent.model_validate_json(raw)
    raise WebhookError("The signature of the webhook is not right.")
