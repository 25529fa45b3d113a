"""The client itself: one object, everything below it."""

from __future__ import annotations

import json
import os
import time
import uuid
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Literal, Mapping, Sequence

import httpx
from pydantic import PrivateAttr
from typing_extensions import Self, Unpack

from ._analytics_async import AsyncAnalytics
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
from ._pause import pause_async
from ._policy import Ask, CallOptions, Hooks, query_of, read_options
from ._transport_async import AsyncTransport
from ._webhooks import WebhookEvent, verify_webhook

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

_ENDED = ("COMPLETED", "FAILED", "CANCELLED")
_DAY_SECONDS = 86_400.0


class AsyncImage(ImagesAnswer):
    """A picture that was made."""

    _transport: AsyncTransport = PrivateAttr()

    async def read(self) -> bytes:
        return await self._transport.download(str(self.data[0].url))

    async def save(self, path: str | os.PathLike[str]) -> Self:
        """Writes the picture into a file."""
        Path(path).write_bytes(await self.read())
        return self


class AsyncImages:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def generate(self, *, options: CallOptions | None = None, **params: Unpack[ImagesParams]) -> AsyncImage:
        """Makes a picture, or edits and fuses those in ``image_urls``: addresses, data URIs, paths or bytes."""
        ask = Ask("POST", PATHS["images"], body=_image_body(params), paid=True)
        image = await self._transport.model(AsyncImage, ask, options)
        image._transport = self._transport
        return image

    async def stream(
        self, *, options: CallOptions | None = None, **params: Unpack[ImagesParams]
    ) -> AsyncIterator[ImageEvent]:
        """The same as events, up to ``image_generation.completed``."""
        ask = Ask("POST", PATHS["images"], body={**_image_body(params), "stream": True}, paid=True)
        async with aclosing(self._transport.json_events(ImageEvent, ask, options)) as events:  # type: ignore[type-var]
            async for event in events:
                yield event


def _image_body(params: Mapping[str, Any]) -> dict[str, Any]:
    body = {"model": "alpha-image-2", **params}
    if params.get("image_urls"):
        body["image_urls"] = [as_address(one) for one in params["image_urls"]]
    return body


class AsyncVideo:
    """A video on its way, or finished."""

    def __init__(self, id: str, transport: AsyncTransport) -> None:
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

    async def refresh(self, options: CallOptions | None = None) -> Job:
        self.job = await self._transport.model(Job, Ask("GET", f"{PATHS['jobs']}/{self.id}"), options, data=True)
        return self.job

    async def cancel(self, options: CallOptions | None = None) -> Job:
        """Asks the vendor to stop; ConflictError where it has begun."""
        self.job = await self._transport.model(Job, Ask("DELETE", f"{PATHS['jobs']}/{self.id}"), options, data=True)
        return self.job

    async def wait(
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
                async with aclosing(self._transport.events(ask, call)) as events:  # type: ignore[type-var]
                    async for event in events:
                        if event.event == "status":
                            self._seen(read_model(Job, json.loads(event.data), {}), on_progress)
                        if time.monotonic() > until:
                            break
            except (ConnectionFailedError, ServerError, DeadlineError):
                pass
            if self.status not in _ENDED:
                # The events ended early: something between us and the gateway does not carry them.
                before = self.job
                job = await self.refresh(CallOptions(deadline=max(1.0, until - time.monotonic())))
                self.job = before
                self._seen(job, on_progress)
            if self.status not in _ENDED:
                await pause_async(min(poll, max(0.0, until - time.monotonic())))
        if self.job and self.status != "COMPLETED":
            error = self.job.error
            raise JobFailedError(error.message if error else f"The job was {self.status.lower()}.", self.id)
        return self

    def _seen(self, job: Job, on_progress: Callable[[Job], None] | None) -> None:
        if on_progress and (self.job is None or job.status != self.job.status):
            on_progress(job)
        self.job = job

    async def read(self) -> bytes:
        return await self._transport.download(self.urls[0])

    async def save(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_bytes(await self.read())


class AsyncVideos:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, *, options: CallOptions | None = None, **params: Unpack[VideoParams]) -> AsyncVideo:
        """Starts a video. When this returns the job is durable."""
        body: dict[str, Any] = {"model": "videogen-2.0", **params}
        for name in ("first_frame", "last_frame"):
            if name in params:
                body[name] = as_address(body[name])
        if "image_urls" in params:
            body["image_urls"] = [as_address(one) for one in params["image_urls"]]
        response = await self._transport.send(Ask("POST", PATHS["video"], body=body, paid=True), options)
        return AsyncVideo(response.json()["data"]["jobId"], self._transport)

    def resume(self, id: str) -> AsyncVideo:
        """A video that was started earlier, perhaps by another program."""
        return AsyncVideo(id, self._transport)


class AsyncJobs:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get(self, id: str, options: CallOptions | None = None) -> Job:
        return await self._transport.model(Job, Ask("GET", f"{PATHS['jobs']}/{id}"), options, data=True)

    async def list(
        self, *, options: CallOptions | None = None, **params: Unpack[JobsListParams]
    ) -> AsyncIterator[Job]:
        """Newest first, page after page."""
        query = query_of(params, COUNTRIES)
        while True:
            response = await self._transport.send(Ask("GET", PATHS["jobs"], query=query), options)
            page = response.json()
            for job in page["data"]:
                yield read_model(Job, job, {})
            if not page["hasMore"]:
                return
            query["before"] = page["nextBefore"]


class AsyncPurses:
    """What customers of the account have, at its own prices. For the account's server, with a key that is not restricted."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
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
        return await self._transport.model(Purse, Ask("POST", PATHS["purses"], body=body), options, data=True)

    async def get(self, id: str, options: CallOptions | None = None) -> Purse:
        return await self._transport.model(Purse, Ask("GET", f"{PATHS['purses']}/{id}"), options, data=True)

    def list(
        self, *, search: str | None = None, status: str | None = None, options: CallOptions | None = None
    ) -> AsyncIterator[Purse]:
        """By their ids, page after page. ``search``: a part of the id or name."""
        query = {name: value for name, value in (("search", search), ("status", status)) if value is not None}
        return self._pages(Purse, PATHS["purses"], options, query)

    def movements(self, id: str, *, options: CallOptions | None = None) -> AsyncIterator[PurseMovement]:
        """Calls, grants and changes, newest first, page after page."""
        return self._pages(PurseMovement, f"{PATHS['purses']}/{id}/movements", options)

    def sessions(self, id: str, *, options: CallOptions | None = None) -> AsyncIterator[PurseSessionState]:
        """Session tokens that have not expired, newest first, page after page."""
        return self._pages(PurseSessionState, f"{PATHS['purses']}/{id}/sessions", options)

    def invoices(self, id: str, *, options: CallOptions | None = None) -> AsyncIterator[PurseInvoice]:
        """Those in your name for what the customer paid, newest first, page after page."""
        return self._pages(PurseInvoice, f"{PATHS['purses']}/{id}/invoices", options)

    async def _pages(
        self, model: type[M], path: str, options: CallOptions | None, given: Mapping[str, str] = {}
    ) -> AsyncIterator[M]:
        query = dict(given)
        while True:
            page = (await self._transport.send(Ask("GET", path, query=query), options)).json()["data"]
            for item in page["items"]:
                yield read_model(model, item, {})
            if page["next"] is None:
                return
            query["cursor"] = page["next"]

    async def invoice(self, id: str, invoice: str, options: CallOptions | None = None) -> bytes:
        """The PDF of one, by its id."""
        given = options or CallOptions()
        asked = replace(given, headers={**given.headers, "accept": "application/pdf"})
        ask = Ask("GET", f"{PATHS['purses']}/{id}/invoices/{invoice}")
        return (await self._transport.send(ask, asked)).content

    async def billing_details(self, id: str, options: CallOptions | None = None) -> PurseBillingDetails:
        """Whom the invoices are made out to."""
        ask = Ask("GET", f"{PATHS['purses']}/{id}/billing-details")
        return await self._transport.model(PurseBillingDetails, ask, options, data=True)

    async def change_billing_details(
        self, id: str, *, options: CallOptions | None = None, **details: str | None
    ) -> PurseBillingDetails:
        """``company``, ``name``, ``street``, ``postcode``, ``city``, ``country``, ``vatId``, ``email``; others are removed."""
        ask = Ask("PUT", f"{PATHS['purses']}/{id}/billing-details", body=details)
        return await self._transport.model(PurseBillingDetails, ask, options, data=True)

    async def top_up_state(self, id: str, top_up: str, options: CallOptions | None = None) -> PurseTopUpState:
        """What became of a top-up, by its id."""
        ask = Ask("GET", f"{PATHS['purses']}/{id}/topups/{top_up}")
        return await self._transport.model(PurseTopUpState, ask, options, data=True)

    async def top_up(self, id: str, amount: str, *, options: CallOptions | None = None, **order: Any) -> PurseTopUp:
        """Begins a top-up: the customer pays at its ``url``. Also takes ``currency`` and ``returnUrl``."""
        ask = Ask("POST", f"{PATHS['purses']}/{id}/topups", body={"amount": amount, **order})
        return await self._transport.model(PurseTopUp, ask, options, data=True)

    async def page(self, id: str, *, seconds: int = 3600, options: CallOptions | None = None) -> PursePageLink:
        """A link to the page on which the customer sees the purse and tops it up."""
        ask = Ask("POST", f"{PATHS['purses']}/{id}/page", body={"seconds": seconds})
        return await self._transport.model(PursePageLink, ask, options, data=True)

    async def change(self, id: str, *, options: CallOptions | None = None, **changes: Any) -> Purse:
        """Its ``name``, ``low`` or ``status``: frozen, its calls are rejected; closed, it gives back what it has, for good."""
        ask = Ask("PATCH", f"{PATHS['purses']}/{id}", body=changes)
        return await self._transport.model(Purse, ask, options, data=True)

    async def grant(
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
        return await self._transport.model(Purse, ask, options, data=True)

    async def statement(
        self, id: str, *, month: str | None = None, options: CallOptions | None = None
    ) -> PurseStatement:
        """Of this month unless one is given, such as 2026-11."""
        query = None if month is None else {"month": month}
        ask = Ask("GET", f"{PATHS['purses']}/{id}/statement", query=query)
        return await self._transport.model(PurseStatement, ask, options, data=True)

    async def session(self, id: str, *, options: CallOptions | None = None, **bounds: Any) -> PurseSession:
        """A token for the customer's app or page: ``seconds``, ``models``, ``endpoints``, ``origins``, ``callMax``."""
        ask = Ask("POST", f"{PATHS['purses']}/{id}/sessions", body=bounds)
        return await self._transport.model(PurseSession, ask, options, data=True)

    async def revoke(self, id: str, session: str, options: CallOptions | None = None) -> None:
        """A session token, by its id."""
        await self._transport.send(Ask("DELETE", f"{PATHS['purses']}/{id}/sessions/{session}"), options)


def _wire(params: Mapping[str, Any]) -> dict[str, str]:
    """``user_fields`` is ``user.fields`` in the address."""
    return query_of({name.replace("_fields", ".fields"): value for name, value in params.items()}, COUNTRIES)


class AsyncSocialUsers:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def by_username(
        self, username: str, *, options: CallOptions | None = None, **params: Unpack[SocialUsersParams]
    ) -> SocialUsersAnswer:
        """With or without a leading @."""
        ask = Ask("GET", PATHS["social"], query={"username": username, **_wire(params)}, paid=True)
        return await self._transport.model(SocialUsersAnswer, ask, options)

    async def by_id(
        self, id: str, *, options: CallOptions | None = None, **params: Unpack[SocialUsersIdParams]
    ) -> SocialUsersAnswer:
        ask = Ask("GET", f"{PATHS['social']}/{id}", query=_wire(params), paid=True)
        return await self._transport.model(SocialUsersAnswer, ask, options)


class AsyncSocial:
    def __init__(self, transport: AsyncTransport) -> None:
        self.users = AsyncSocialUsers(transport)
        self._transport = transport

    async def page(
        self, id: str, *, options: CallOptions | None = None, **params: Unpack[SocialUsersIdTweetsParams]
    ) -> SocialUsersIdTweetsAnswer:
        ask = Ask("GET", f"{PATHS['social']}/{id}/tweets", query=_wire(params), paid=True)
        return await self._transport.model(SocialUsersIdTweetsAnswer, ask, options)

    async def pages(
        self, id: str, *, options: CallOptions | None = None, **params: Unpack[SocialUsersIdTweetsParams]
    ) -> AsyncIterator[SocialUsersIdTweetsAnswer]:
        """Page after page, each of which is paid for."""
        while True:
            found = await self.page(id, options=options, **params)
            yield found
            if not found.meta.next_token:
                return
            params["pagination_token"] = found.meta.next_token

    async def timeline(
        self,
        id: str,
        *,
        max: int | None = None,
        options: CallOptions | None = None,
        **params: Unpack[SocialUsersIdTweetsParams],
    ) -> AsyncIterator[Tweet]:
        """Tweets, newest first; ``max`` ends the walk."""
        left = max
        async with aclosing(self.pages(id, options=options, **params)) as pages:  # type: ignore[type-var]
            async for found in pages:
                for tweet in found.data:
                    if left == 0:
                        return
                    yield tweet
                    left = None if left is None else left - 1
                if left == 0:
                    return


class AsyncChat:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, *, options: CallOptions | None = None, **params: Unpack[ChatParams]) -> ChatAnswer:
        ask = Ask("POST", PATHS["chat"], body=dict(params), paid=True)
        return await self._transport.model(ChatAnswer, ask, options)

    def stream(
        self, *, options: CallOptions | None = None, **params: Unpack[ChatParams]
    ) -> AsyncIterator[ChatChunk]:
        """The events of the format, as they come."""
        ask = Ask("POST", PATHS["chat"], body={**params, "stream": True}, paid=True)
        return self._transport.json_events(ChatChunk, ask, options)


class AsyncResponses:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self, *, options: CallOptions | None = None, **params: Unpack[ResponsesParams]
    ) -> ResponsesAnswer:
        ask = Ask("POST", PATHS["responses"], body=dict(params), paid=True)
        return await self._transport.model(ResponsesAnswer, ask, options)

    def stream(
        self, *, options: CallOptions | None = None, **params: Unpack[ResponsesParams]
    ) -> AsyncIterator[ResponsesEvent]:
        ask = Ask("POST", PATHS["responses"], body={**params, "stream": True}, paid=True)
        return self._transport.json_events(ResponsesEvent, ask, options)


class AsyncMessages:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, *, options: CallOptions | None = None, **params: Unpack[MessagesParams]) -> MessagesAnswer:
        ask = Ask("POST", PATHS["messages"], body=dict(params), paid=True)
        return await self._transport.model(MessagesAnswer, ask, options)

    def stream(
        self, *, options: CallOptions | None = None, **params: Unpack[MessagesParams]
    ) -> AsyncIterator[MessagesEvent]:
        ask = Ask("POST", PATHS["messages"], body={**params, "stream": True}, paid=True)
        return self._transport.json_events(MessagesEvent, ask, options)

    async def count_tokens(
        self, *, options: CallOptions | None = None, **params: Unpack[CountTokensParams]
    ) -> TokenCount:
        """How many input tokens a request has. Free of charge."""
        return await self._transport.model(TokenCount, Ask("POST", PATHS["count_tokens"], body=dict(params)), options)


class AsyncEmbeddings:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self, *, options: CallOptions | None = None, **params: Unpack[EmbeddingsParams]
    ) -> EmbeddingsAnswer:
        ask = Ask("POST", PATHS["embeddings"], body=dict(params), paid=True)
        return await self._transport.model(EmbeddingsAnswer, ask, options)


class AsyncWebhooks:
    def verify(self, body: str | bytes, headers: Mapping[str, str], secret: str) -> WebhookEvent:
        """The event of a webhook, if it is genuine; WebhookError otherwise."""
        return verify_webhook(body, headers, secret)


class AsyncTollgate:
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
        http: httpx.AsyncClient | None = None,
    ) -> None:
        """``api_key`` and ``base_url`` default to TOLLGATE_KEY and TOLLGATE_URL in the environment."""
        options = read_options(api_key, base_url, timeout, deadline, retries_max, headers=headers, hooks=hooks)
        transport = AsyncTransport(options, http)
        self._transport = transport
        self.analytics = AsyncAnalytics(transport)
        self.social = AsyncSocial(transport)
        self.images = AsyncImages(transport)
        self.videos = AsyncVideos(transport)
        self.jobs = AsyncJobs(transport)
        self.purses = AsyncPurses(transport)
        self.chat = AsyncChat(transport)
        self.responses = AsyncResponses(transport)
        self.messages = AsyncMessages(transport)
        self.embeddings = AsyncEmbeddings(transport)
        self.webhooks = AsyncWebhooks()

    async def account(self, options: CallOptions | None = None) -> AccountAnswerData:
        """Balance, held credits, limits and restrictions."""
        return await self._transport.model(AccountAnswerData, Ask("GET", PATHS["account"]), options, data=True)

    async def models(self, options: CallOptions | None = None) -> Answers[Model]:
        """The models that this key may use, with their prices."""
        return await self._transport.list(Model, Ask("GET", PATHS["models"]), options, data=True)

    async def model(self, id: str, options: CallOptions | None = None) -> Model:
        return await self._transport.model(Model, Ask("GET", f"{PATHS['models']}/{id}"), options, data=True)

    async def quote(
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
        return await self._transport.model(QuoteAnswerData, ask, options, data=True)

    def openai(self, **over: Any) -> AsyncOpenAI:
        """The official SDK of OpenAI, set to this gateway, where it is installed."""
        from openai import AsyncOpenAI

        options = self._transport.options
        return AsyncOpenAI(base_url=f"{options.base_url}/v1", api_key=options.api_key, **over)

    def anthropic(self, **over: Any) -> AsyncAnthropic:
        """The official SDK of Anthropic, set to this gateway, where it is installed."""
        from anthropic import AsyncAnthropic

        options = self._transport.options
        return AsyncAnthropic(base_url=f"{options.base_url}/beta", api_key=options.api_key, **over)

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
