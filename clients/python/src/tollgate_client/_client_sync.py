# Generated from the catalog and the OpenAPI document by `npm run generate`. Do not change it by hand.
# ruff: noqa
"""The client itself: one object, everything below it."""

from __future__ import annotations

import json
import os
import time
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterator, Callable, Literal, Mapping, Sequence

import httpx
from pydantic import PrivateAttr
from typing_extensions import Self, Unpack

from ._analytics_sync import Analytics
from ._answer import Answers, M, read_model
from ._errors import ConnectionFailedError, DeadlineError, JobFailedError, ServerError, TollgateError
from ._events import ChatChunk, ImageEvent, MessagesEvent, ResponsesEvent
from ._files import as_address
from ._generated import (
    COUNTRIES,
    PATHS,
    AccountAnswerData,
    ChatAnswer,
    ChatParams,
    CountTokensParams,
    EmbeddingsAnswer,
    EmbeddingsParams,
    ImagesAnswer,
    ImagesParams,
    Job,
    JobsListParams,
    JobStatus,
    MessagesAnswer,
    MessagesParams,
    Model,
    PaidEndpoint,
    Purse,
    PurseBillingDetails,
    PurseInvoice,
    PurseMovement,
    PursePageLink,
    PurseSession,
    PurseSessionState,
    PurseStatement,
    PurseTopUp,
    PurseTopUpState,
    QuoteAnswerData,
    ResponsesAnswer,
    ResponsesParams,
    SocialUsersAnswer,
    SocialUsersIdParams,
    SocialUsersIdTweetsAnswer,
    SocialUsersIdTweetsParams,
    SocialUsersParams,
    TokenCount,
    Tweet,
    VideoParams,
)
from ._pause import pause_sync
from ._policy import Ask, CallOptions, Hooks, query_of, read_options
from ._transport_sync import Transport
from ._webhooks import WebhookEvent, verify_webhook

if TYPE_CHECKING:
    from anthropic import Anthropic
    from openai import OpenAI

_ENDED = ("COMPLETED", "FAILED", "CANCELLED")
_DAY_SECONDS = 86_400.0


class Image(ImagesAnswer):
    """A picture that was made."""

    _transport: Transport = PrivateAttr()

    def read(self) -> bytes:
        return self._transport.download(str(self.data[0].url))

    def save(self, path: str | os.PathLike[str]) -> Self:
        """Writes the picture into a file."""
        Path(path).write_bytes(self.read())
        return self


class Images:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def generate(self, *, options: CallOptions | None = None, **params: Unpack[ImagesParams]) -> Image:
        """Makes a picture, or edits and fuses those in ``image_urls``: addresses, data URIs, paths or bytes."""
        ask = Ask("POST", PATHS["images"], body=_image_body(params), paid=True)
        image = self._transport.model(Image, ask, options)
        image._transport = self._transport
        return image

    def stream(
        self, *, options: CallOptions | None = None, **params: Unpack[ImagesParams]
    ) -> Iterator[ImageEvent]:
        """The same as events, up to ``image_generation.completed``."""
        ask = Ask("POST", PATHS["images"], body={**_image_body(params), "stream": True}, paid=True)
        with closing(self._transport.json_events(ImageEvent, ask, options)) as events:  # type: ignore[type-var]
            for event in events:
                yield event


def _image_body(params: Mapping[str, Any]) -> dict[str, Any]:
    body = {"model": "alpha-image-2", **params}
    if params.get("image_urls"):
        body["image_urls"] = [as_address(one) for one in params["image_urls"]]
    return body


class Video:
    """A video on its way, or finished."""

    def __init__(self, id: str, transport: Transport) -> None:
        self.id = id
        #: As it was when last heard of.
        self.job: Job | None = None
        self._transport = transport

    @property
    def status(self) -> JobStatus:
        return self.job.status if self.job else "PENDING"

    @property
    def urls(self) -> list[str]:
        """Addresses of the result; empty while there is none."""
        return [url for one in (self.job.output_result if self.job else None) or [] for url in one.url]

    def refresh(self, options: CallOptions | None = None) -> Job:
        self.job = self._transport.model(Job, Ask("GET", f"{PATHS['jobs']}/{self.id}"), options, data=True)
        return self.job

    def cancel(self, options: CallOptions | None = None) -> Job:
        """Asks the vendor to stop; ConflictError where it has begun."""
        self.job = self._transport.model(Job, Ask("DELETE", f"{PATHS['jobs']}/{self.id}"), options, data=True)
        return self.job

    def wait(
        self,
        *,
        on_progress: Callable[[Job], None] | None = None,
        poll: float = 5.0,
        deadline: float = _DAY_SECONDS,
    ) -> Self:
        """Until it is finished, by its events, and by asking every ``poll`` seconds where there are none."""
        until = time.monotonic() + deadline
        while self.status not in _ENDED:
            left = until - time.monotonic()
            if left <= 0:
                raise DeadlineError(f"Job {self.id} has not ended within {deadline} s.")
            ask = Ask("GET", f"{PATHS['jobs']}/{self.id}/events")
            call = CallOptions(timeout=min(left, 60.0), deadline=left)
            try:
                with closing(self._transport.events(ask, call)) as events:  # type: ignore[type-var]
                    for event in events:
                        if event.event == "status":
                            self._seen(read_model(Job, json.loads(event.data), {}), on_progress)
                        if time.monotonic() > until:
                            break
            except (ConnectionFailedError, ServerError, DeadlineError):
                pass
            if self.status not in _ENDED:
                # The events ended early: something between us and the gateway does not carry them.
                before = self.job
                job = self.refresh(CallOptions(deadline=max(1.0, until - time.monotonic())))
                self.job = before
                self._seen(job, on_progress)
            if self.status not in _ENDED:
                pause_sync(min(poll, max(0.0, until - time.monotonic())))
        if self.job and self.status != "COMPLETED":
            error = self.job.error
            raise JobFailedError(error.message if error else f"The job was {self.status.lower()}.", self.id)
        return self

    def _seen(self, job: Job, on_progress: Callable[[Job], None] | None) -> None:
        if on_progress and (self.job is None or job.status != self.job.status):
            on_progress(job)
        self.job = job

    def read(self) -> bytes:
        return self._transport.download(self.urls[0])

    def save(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_bytes(self.read())


class Videos:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, *, options: CallOptions | None = None, **params: Unpack[VideoParams]) -> Video:
        """Starts a video. When this returns the job is durable."""
        body: dict[str, Any] = {"model": "videogen-2.0", **params}
        for name in ("first_frame", "last_frame"):
            if name in params:
                body[name] = as_address(body[name])
        if "image_urls" in params:
            body["image_urls"] = [as_address(one) for one in params["image_urls"]]
        response = self._transport.send(Ask("POST", PATHS["video"], body=body, paid=True), options)
        return Video(response.json()["data"]["jobId"], self._transport)

    def resume(self, id: str) -> Video:
        """A video that was started earlier, perhaps by another program."""
        return Video(id, self._transport)


class Jobs:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, id: str, options: CallOptions | None = None) -> Job:
        return self._transport.model(Job, Ask("GET", f"{PATHS['jobs']}/{id}"), options, data=True)

    def list(
        self, *, options: CallOptions | None = None, **params: Unpack[JobsListParams]
    ) -> Iterator[Job]:
        """Newest first, page after page."""
        query = query_of(params, COUNTRIES)
        while True:
            response = self._transport.send(Ask("GET", PATHS["jobs"], query=query), options)
            page = response.json()
            for job in page["data"]:
                yield read_model(Job, job, {})
            if not page["hasMore"]:
                return
            query["before"] = page["nextBefore"]


class Purses:
    """What customers of the account have, at its own prices. For the account's server, with a key that is not restricted."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        id: str,
        *,
        name: str = "",
        low: str | None = None,
        credits: str = "0",
        options: CallOptions | None = None,
    ) -> Purse:
        """The id is your own name of the customer. Creating it again changes nothing."""
        body = {"id": id, "name": name, "low": low, "credits": credits}
        return self._transport.model(Purse, Ask("POST", PATHS["purses"], body=body), options, data=True)

    def get(self, id: str, options: CallOptions | None = None) -> Purse:
        return self._transport.model(Purse, Ask("GET", f"{PATHS['purses']}/{id}"), options, data=True)

    def list(
        self, *, search: str | None = None, status: str | None = None, options: CallOptions | None = None
    ) -> Iterator[Purse]:
        """By their ids, page after page. ``search``: a part of the id or name."""
        query = {name: value for name, value in (("search", search), ("status", status)) if value is not None}
        return self._pages(Purse, PATHS["purses"], options, query)

    def movements(self, id: str, *, options: CallOptions | None = None) -> Iterator[PurseMovement]:
        """Calls, grants and changes, newest first, page after page."""
        return self._pages(PurseMovement, f"{PATHS['purses']}/{id}/movements", options)

    def sessions(self, id: str, *, options: CallOptions | None = None) -> Iterator[PurseSessionState]:
        """Session tokens that have not expired, newest first, page after page."""
        return self._pages(PurseSessionState, f"{PATHS['purses']}/{id}/sessions", options)

    def invoices(self, id: str, *, options: CallOptions | None = None) -> Iterator[PurseInvoice]:
        """Those in your name for what the customer paid, newest first, page after page."""
        return self._pages(PurseInvoice, f"{PATHS['purses']}/{id}/invoices", options)

    def _pages(
        self, model: type[M], path: str, options: CallOptions | None, given: Mapping[str, str] = {}
    ) -> Iterator[M]:
        query = dict(given)
        while True:
            page = (self._transport.send(Ask("GET", path, query=query), options)).json()["data"]
            for item in page["items"]:
                yield read_model(model, item, {})
            if page["next"] is None:
                return
            query["cursor"] = page["next"]

    def invoice(self, id: str, invoice: str, options: CallOptions | None = None) -> bytes:
        """The PDF of one, by its id."""
        given = options or CallOptions()
        asked = replace(given, headers={**given.headers, "accept": "application/pdf"})
        ask = Ask("GET", f"{PATHS['purses']}/{id}/invoices/{invoice}")
        return (self._transport.send(ask, asked)).content

    def billing_details(self, id: str, options: CallOptions | None = None) -> PurseBillingDetails:
        """Whom the invoices are made out to."""
        ask = Ask("GET", f"{PATHS['purses']}/{id}/billing-details")
        return self._transport.model(PurseBillingDetails, ask, options, data=True)

    def change_billing_details(
        self, id: str, *, options: CallOptions | None = None, **details: str | None
    ) -> PurseBillingDetails:
        """``company``, ``name``, ``street``, ``postcode``, ``city``, ``country``, ``vatId``, ``email``; others are removed."""
        ask = Ask("PUT", f"{PATHS['purses']}/{id}/billing-details", body=details)
        return self._transport.model(PurseBillingDetails, ask, options, data=True)

    def top_up_state(self, id: str, top_up: str, options: CallOptions | None = None) -> PurseTopUpState:
        """What became of a top-up, by its id."""
        ask = Ask("GET", f"{PATHS['purses']}/{id}/topups/{top_up}")
        return self._transport.model(PurseTopUpState, ask, options, data=True)

    def top_up(self, id: str, amount: str, *, options: CallOptions | None = None, **order: Any) -> PurseTopUp:
        """Begins a top-up: the customer pays at its ``url``. Also takes ``currency`` and ``returnUrl``."""
        ask = Ask("POST", f"{PATHS['purses']}/{id}/topups", body={"amount": amount, **order})
        return self._transport.model(PurseTopUp, ask, options, data=True)

    def page(self, id: str, *, seconds: int = 3600, options: CallOptions | None = None) -> PursePageLink:
        """A link to the page on which the customer sees the purse and tops it up."""
        ask = Ask("POST", f"{PATHS['purses']}/{id}/page", body={"seconds": seconds})
        return self._transport.model(PursePageLink, ask, options, data=True)

    def change(self, id: str, *, options: CallOptions | None = None, **changes: Any) -> Purse:
        """Its ``name``, ``low`` or ``status``: frozen, its calls are rejected; closed, it gives back what it has, for good."""
        ask = Ask("PATCH", f"{PATHS['purses']}/{id}", body=changes)
        return self._transport.model(Purse, ask, options, data=True)

    def grant(
        self,
        id: str,
        credits: str,
        *,
        kind: Literal["grant", "topup"] = "grant",
        reference: str | None = None,
        note: str | None = None,
        options: CallOptions | None = None,
    ) -> Purse:
        """Below zero they are taken back. The same reference, such as the number of an order, is granted once."""
        body = {"credits": credits, "kind": kind, "reference": reference or str(uuid.uuid4())}
        if note is not None:
            body["note"] = note
        ask = Ask("POST", f"{PATHS['purses']}/{id}/grants", body=body)
        return self._transport.model(Purse, ask, options, data=True)

    def statement(
        self, id: str, *, month: str | None = None, options: CallOptions | None = None
    ) -> PurseStatement:
        """Of this month unless one is given, such as 2026-11."""
        query = None if month is None else {"month": month}
        ask = Ask("GET", f"{PATHS['purses']}/{id}/statement", query=query)
        return self._transport.model(PurseStatement, ask, options, data=True)

    def session(self, id: str, *, options: CallOptions | None = None, **bounds: Any) -> PurseSession:
        """A token for the customer's app or page: ``seconds``, ``models``, ``endpoints``, ``origins``, ``callMax``."""
        ask = Ask("POST", f"{PATHS['purses']}/{id}/sessions", body=bounds)
        return self._transport.model(PurseSession, ask, options, data=True)

    def revoke(self, id: str, session: str, options: CallOptions | None = None) -> None:
        """A session token, by its id."""
        self._transport.send(Ask("DELETE", f"{PATHS['purses']}/{id}/sessions/{session}"), options)


def _wire(params: Mapping[str, Any]) -> dict[str, str]:
    """``user_fields`` is ``user.fields`` in the address."""
    return query_of({name.replace("_fields", ".fields"): value for name, value in params.items()}, COUNTRIES)


class SocialUsers:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def by_username(
        self, username: str, *, options: CallOptions | None = None, **params: Unpack[SocialUsersParams]
    ) -> SocialUsersAnswer:
        """With or without a leading @."""
        ask = Ask("GET", PATHS["social"], query={"username": username, **_wire(params)}, paid=True)
        return self._transport.model(SocialUsersAnswer, ask, options)

    def by_id(
        self, id: str, *, options: CallOptions | None = None, **params: Unpack[SocialUsersIdParams]
    ) -> SocialUsersAnswer:
        ask = Ask("GET", f"{PATHS['social']}/{id}", query=_wire(params), paid=True)
        return self._transport.model(SocialUsersAnswer, ask, options)


class Social:
    def __init__(self, transport: Transport) -> None:
        self.users = SocialUsers(transport)
        self._transport = transport

    def page(
        self, id: str, *, options: CallOptions | None = None, **params: Unpack[SocialUsersIdTweetsParams]
    ) -> SocialUsersIdTweetsAnswer:
        ask = Ask("GET", f"{PATHS['social']}/{id}/tweets", query=_wire(params), paid=True)
        return self._transport.model(SocialUsersIdTweetsAnswer, ask, options)

    def pages(
        self, id: str, *, options: CallOptions | None = None, **params: Unpack[SocialUsersIdTweetsParams]
    ) -> Iterator[SocialUsersIdTweetsAnswer]:
        """Page after page, each of which is paid for."""
        while True:
            found = self.page(id, options=options, **params)
            yield found
            if not found.meta.next_token:
                return
            params["pagination_token"] = found.meta.next_token

    def timeline(
        self,
        id: str,
        *,
        max: int | None = None,
        options: CallOptions | None = None,
        **params: Unpack[SocialUsersIdTweetsParams],
    ) -> Iterator[Tweet]:
        """Tweets, newest first; ``max`` ends the walk."""
        left = max
        with closing(self.pages(id, options=options, **params)) as pages:  # type: ignore[type-var]
            for found in pages:
                for tweet in found.data:
                    if left == 0:
                        return
                    yield tweet
                    left = None if left is None else left - 1
                if left == 0:
                    return


class Chat:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, *, options: CallOptions | None = None, **params: Unpack[ChatParams]) -> ChatAnswer:
        ask = Ask("POST", PATHS["chat"], body=dict(params), paid=True)
        return self._transport.model(ChatAnswer, ask, options)

    def stream(
        self, *, options: CallOptions | None = None, **params: Unpack[ChatParams]
    ) -> Iterator[ChatChunk]:
        """The events of the format, as they come."""
        ask = Ask("POST", PATHS["chat"], body={**params, "stream": True}, paid=True)
        return self._transport.json_events(ChatChunk, ask, options)


class Responses:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self, *, options: CallOptions | None = None, **params: Unpack[ResponsesParams]
    ) -> ResponsesAnswer:
        ask = Ask("POST", PATHS["responses"], body=dict(params), paid=True)
        return self._transport.model(ResponsesAnswer, ask, options)

    def stream(
        self, *, options: CallOptions | None = None, **params: Unpack[ResponsesParams]
    ) -> Iterator[ResponsesEvent]:
        ask = Ask("POST", PATHS["responses"], body={**params, "stream": True}, paid=True)
        return self._transport.json_events(ResponsesEvent, ask, options)


class Messages:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, *, options: CallOptions | None = None, **params: Unpack[MessagesParams]) -> MessagesAnswer:
        ask = Ask("POST", PATHS["messages"], body=dict(params), paid=True)
        return self._transport.model(MessagesAnswer, ask, options)

    def stream(
        self, *, options: CallOptions | None = None, **params: Unpack[MessagesParams]
    ) -> Iterator[MessagesEvent]:
        ask = Ask("POST", PATHS["messages"], body={**params, "stream": True}, paid=True)
        return self._transport.json_events(MessagesEvent, ask, options)

    def count_tokens(
        self, *, options: CallOptions | None = None, **params: Unpack[CountTokensParams]
    ) -> TokenCount:
        """How many input tokens a request has. Free of charge."""
        return self._transport.model(TokenCount, Ask("POST", PATHS["count_tokens"], body=dict(params)), options)


class Embeddings:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self, *, options: CallOptions | None = None, **params: Unpack[EmbeddingsParams]
    ) -> EmbeddingsAnswer:
        ask = Ask("POST", PATHS["embeddings"], body=dict(params), paid=True)
        return self._transport.model(EmbeddingsAnswer, ask, options)


class Webhooks:
    def verify(self, body: str | bytes, headers: Mapping[str, str], secret: str) -> WebhookEvent:
        """The event of a webhook, if it is genuine; WebhookError otherwise."""
        return verify_webhook(body, headers, secret)


class Tollgate:
    """``with`` closes its connections; so does ``close``."""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 300.0,
        deadline: float = 600.0,
        retries_max: int = 5,
        headers: Mapping[str, str] | None = None,
        hooks: Hooks | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        """``api_key`` and ``base_url`` default to TOLLGATE_KEY and TOLLGATE_URL in the environment."""
        options = read_options(api_key, base_url, timeout, deadline, retries_max, headers=headers, hooks=hooks)
        transport = Transport(options, http)
        self._transport = transport
        self.analytics = Analytics(transport)
        self.social = Social(transport)
        self.images = Images(transport)
        self.videos = Videos(transport)
        self.jobs = Jobs(transport)
        self.purses = Purses(transport)
        self.chat = Chat(transport)
        self.responses = Responses(transport)
        self.messages = Messages(transport)
        self.embeddings = Embeddings(transport)
        self.webhooks = Webhooks()

    def account(self, options: CallOptions | None = None) -> AccountAnswerData:
        """Balance, held credits, limits and restrictions."""
        return self._transport.model(AccountAnswerData, Ask("GET", PATHS["account"]), options, data=True)

    def models(self, options: CallOptions | None = None) -> Answers[Model]:
        """The models that this key may use, with their prices."""
        return self._transport.list(Model, Ask("GET", PATHS["models"]), options, data=True)

    def model(self, id: str, options: CallOptions | None = None) -> Model:
        return self._transport.model(Model, Ask("GET", f"{PATHS['models']}/{id}"), options, data=True)

    def quote(
        self, body: Mapping[str, Any], *, endpoint: PaidEndpoint | None = None, options: CallOptions | None = None
    ) -> QuoteAnswerData:
        """What a request would hold and cost, without running it: its body, or the parameters of a data endpoint."""
        data = endpoint is not None and endpoint.startswith(("social/", "siteanalytics/"))
        ask = Ask(
            "POST",
            PATHS["quote"],
            query=None if endpoint is None else {"endpoint": endpoint},
            body=query_of(body, COUNTRIES) if data else dict(body),
        )
        return self._transport.model(QuoteAnswerData, ask, options, data=True)

    def openai(self, **over: Any) -> OpenAI:
        """The official SDK of OpenAI, set to this gateway, where it is installed."""
        from openai import OpenAI

        options = self._transport.options
        return OpenAI(base_url=f"{options.base_url}/v1", api_key=options.api_key, **over)

    def anthropic(self, **over: Any) -> Anthropic:
        """The official SDK of Anthropic, set to this gateway, where it is installed."""
        from anthropic import Anthropic

        options = self._transport.options
        return Anthropic(base_url=f"{options.base_url}/beta", api_key=options.api_key, **over)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
