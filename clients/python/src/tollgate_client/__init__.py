"""A typed client for Tollgate: images, videos, social data and site analytics."""

from ._answer import Answer, Answers, Cost
from ._client_async import AsyncTollgate, AsyncVideo
from ._client_sync import Tollgate, Video
from ._errors import (
    AccessDeniedError,
    AuthenticationError,
    ConflictError,
    ConnectionFailedError,
    DeadlineError,
    InsufficientCreditsError,
    InvalidRequestError,
    JobFailedError,
    NotFoundError,
    RateLimitError,
    ServerError,
    TollgateError,
    WebhookError,
)
from ._events import ChatChunk, ImageEvent, MessagesEvent, ResponsesEvent
from ._files import Reference
from ._generated import Job, JobStatus, Model, SocialUser, Tweet
from ._policy import CallOptions, Hooks
from ._webhooks import WebhookEvent, verify_webhook

__all__ = [
    "AccessDeniedError",
    "Answer",
    "Answers",
    "AsyncTollgate",
    "AsyncVideo",
    "AuthenticationError",
    "CallOptions",
    "ChatChunk",
    "ConflictError",
    "ConnectionFailedError",
    "Cost",
    "DeadlineError",
    "Hooks",
    "ImageEvent",
    "InsufficientCreditsError",
    "InvalidRequestError",
    "Job",
    "JobFailedError",
    "JobStatus",
    "MessagesEvent",
    "Model",
    "NotFoundError",
    "RateLimitError",
    "Reference",
    "ResponsesEvent",
    "ServerError",
    "SocialUser",
    "Tollgate",
    "TollgateError",
    "Tweet",
    "Video",
    "WebhookError",
    "WebhookEvent",
    "verify_webhook",
]
