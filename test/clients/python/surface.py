"""The client for Python in front of the real gateway: each check prints a line with its name and what went wrong."""

import asyncio
import base64
import inspect
import json
import os
import sys
import tempfile
import time
import traceback
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable

import httpx

import tollgate_client as tg

URL, KEY = os.environ["GATEWAY"], os.environ["GATEWAY_KEY"]
ROOM = Path(tempfile.mkdtemp())
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CHAT: Any = {"model": "alpha-5.4", "messages": [{"role": "user", "content": "hello"}]}
checks: list[Callable[[], Any]] = []


def check(run: Callable[[], Any]) -> Callable[[], Any]:
    checks.append(run)
    return run


def client(**over: Any) -> tg.Tollgate:
    return tg.Tollgate(base_url=URL, api_key=KEY, **over)


@check
def a_customer() -> None:
    with client() as c:
        made = c.purses.create("python-ann", name="Ann", credits="3")
        assert (made.id, made.balance, made.status) == ("python-ann", "3", "open")
        for _ in range(2):
            assert c.purses.grant("python-ann", "2", kind="topup", reference="order-1").balance == "5"
        session = c.purses.session("python-ann", seconds=60, models=["alpha-5.4"], callMax="2")
        assert session.token.startswith(session.prefix)
        with tg.Tollgate(base_url=URL, api_key=session.token) as customer:
            customer.chat.create(**CHAT, max_tokens=20)
            c.purses.revoke("python-ann", session.id)
            try:
                customer.chat.create(**CHAT, max_tokens=20)
                raise AssertionError("it must be rejected")
            except tg.AuthenticationError:
                pass
        statement = c.purses.statement("python-ann")
        assert statement.granted == "5" and statement.lines[0].product == "alpha-5.4"
        assert [one.id for one in c.purses.list(search="python-ann")] == ["python-ann"]
        assert [one.kind for one in c.purses.movements("python-ann")] == ["settled", "topup", "grant"]
        assert "/purse#tgs_" in c.purses.page("python-ann", seconds=60).url
        closing = Decimal(statement.closing)
        top_up = c.purses.top_up("python-ann", "5.00")
        assert c.purses.top_up_state("python-ann", top_up.id).state == "pending"
        assert c.purses.change_billing_details("python-ann", company="Ann SA", country="FR").country == "FR"
        assert c.purses.billing_details("python-ann").company == "Ann SA"
        httpx.post(top_up.url, data={"outcome": "paid"})
        assert c.purses.top_up_state("python-ann", top_up.id).state == "paid"
        (invoice,) = c.purses.invoices("python-ann")
        assert (invoice.customer, invoice.gross) == ("Ann SA", "5.00")
        assert c.purses.invoice("python-ann", invoice.id).startswith(b"%PDF-")
        listed = [one.id for one in c.purses.sessions("python-ann") if one.revoked_at is not None]
        assert listed == [session.id]
        assert c.purses.change("python-ann", status="frozen", note="test").status == "frozen"
        assert Decimal(c.purses.get("python-ann").balance) == closing + 500


@check
def every_analytics_endpoint() -> None:
    with client() as c:
        count = 0
        for group in (c.analytics.keywords, c.analytics.websites):
            for name, method in inspect.getmembers(group, inspect.ismethod):
                if name.startswith("_"):
                    continue
                needed = {
                    parameter.name: {"from_": "2026-10-01", "to": "2026-10-31"}.get(
                        parameter.name, "running shoes" if parameter.name == "keyword" else "example.com"
                    )
                    for parameter in inspect.signature(method).parameters.values()
                    if parameter.default is inspect.Parameter.empty
                }
                answer = method(**needed)
                assert answer.cost and float(answer.cost.charge) > 0, name
                assert answer.request_id.startswith("req_")
                count += 1
        assert count == 27, count
        visits = c.analytics.websites.visits(
            keys="example.com", country="us", from_=date(2026, 10, 1), to="2026-10-31"
        )
        assert visits.data and visits.data["example.com"].total_visits
        suggestions = c.analytics.websites.similar_sites_suggestions(key="example.com", limit=3)
        assert len(suggestions) == 3 and suggestions[0].domain


@check
def profiles_and_timelines() -> None:
    with client() as c:
        user = c.social.users.by_username("@walker137", user_fields=["public_metrics"]).data
        assert user.public_metrics and user.public_metrics.tweet_count == 137
        assert c.social.users.by_id(user.id).data.username == "walker137"
        assert len({tweet.id for tweet in c.social.timeline(user.id, max_results=50)}) == 137
        assert len(list(c.social.timeline(user.id, max=12, exclude=["replies"]))) == 12
        page = c.social.page(user.id, max_results=5, expansions=["author_id"])
        assert page.includes and page.includes.users and page.includes.users[0].id == user.id


@check
def pictures() -> None:
    with client() as c:
        image = c.images.generate(prompt="A gate", size="1024x1024").save(ROOM / "a.png")
        assert (ROOM / "a.png").read_bytes()[1:4] == b"PNG" and image.cost
        edited = c.images.generate(prompt="Bluer", image_urls=[PNG, ROOM / "a.png"])
        assert len(edited.data) == 1
        assert [event.type for event in c.images.stream(prompt="A gate")] == ["image_generation.completed"]


@check
def videos() -> None:
    with client() as c:
        seen: list[str] = []
        video = c.videos.create(prompt="A boat", resolution="480p", duration=4, first_frame=PNG)
        video.wait(on_progress=lambda job: seen.append(job.status))
        assert seen[-1] == "COMPLETED", seen
        video.save(ROOM / "a.mp4")
        assert c.videos.resume(video.id).wait().urls == video.urls
        failing = c.videos.create(prompt="x [[fail]]", resolution="480p")
        try:
            failing.wait()
            raise AssertionError("it must fail")
        except tg.JobFailedError as error:
            assert error.job_id == failing.id
        assert {job.id for job in c.jobs.list(limit=1)} >= {video.id, failing.id}
        assert c.jobs.get(video.id).status == "COMPLETED"


@check
def videos_without_events() -> None:
    real = httpx.HTTPTransport()

    class NoEvents(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/events"):
                return httpx.Response(200, text="")
            return real.handle_request(request)

    with client(http=httpx.Client(transport=NoEvents())) as c:
        assert c.videos.create(prompt="A bell", resolution="480p").wait(poll=0.02).status == "COMPLETED"


@check
def text_and_what_is_free() -> None:
    with client() as c:
        assert c.chat.create(**CHAT).choices[0].message.content
        said = [chunk.choices[0].delta.content or "" for chunk in c.chat.stream(**CHAT) if chunk.choices]
        assert len(said) > 2 and "".join(said)
        assert c.responses.create(model="alpha-5.4", input="hello").object == "response"
        turn: Any = [{"role": "user", "content": "hello"}]
        assert c.messages.create(model="beta-sonnet-4-6", max_tokens=50, messages=turn).type == "message"
        messages = list(c.messages.stream(model="beta-sonnet-4-6", max_tokens=50, messages=turn))
        assert "".join(event.delta.text or "" for event in messages if event.delta)
        assert messages[0].type == "message_start" and messages[0].message["role"] == "assistant"
        events = list(c.responses.stream(model="alpha-5.4", input="hello"))
        assert "".join(event.delta or "" for event in events if event.type == "response.output_text.delta")
        assert events[-1].type == "response.completed" and events[-1].response["status"] == "completed"
        assert c.messages.count_tokens(model="beta-sonnet-4-6", messages=turn).input_tokens > 0
        assert len(c.embeddings.create(model="alpha-embed-3-small", input=["a", "b"]).data) == 2
        models = c.models()
        assert c.model(models[0].uid).uid == models[0].uid
        assert float(c.account().available) > 0
        quote = c.quote(CHAT)
        assert quote.affordable and float(quote.cost_at_most) > 0
        data = c.quote({"keys": "example.com", "country": "us"}, endpoint="siteanalytics/websites/visits")
        assert data.endpoint == "siteanalytics/websites/visits"


@check
def official_sdks() -> None:
    with client() as c:
        assert c.openai().chat.completions.create(**CHAT).choices[0].message.content
        message = c.anthropic().messages.create(
            model="beta-sonnet-4-6", max_tokens=20, messages=[{"role": "user", "content": "hello"}]
        )
        assert message.role == "assistant"


@check
def webhooks() -> None:
    body, headers, secret = os.environ["HOOK_BODY"], json.loads(os.environ["HOOK_HEADERS"]), os.environ["HOOK_SECRET"]
    hooks = client().webhooks
    assert hooks.verify(body, headers, secret).data.status == "COMPLETED"
    assert hooks.verify(body.encode(), {name.title(): value for name, value in headers.items()}, secret).data.id
    old = {**headers, "webhook-timestamp": "1700000000"}
    for text, given in ((body + " ", headers), (body, old), (body, {}), (body, {**headers, "webhook-signature": "v1,AA"})):
        try:
            hooks.verify(text, given, secret)
            raise AssertionError("it must not be believed")
        except tg.WebhookError:
            pass


@check
def errors() -> None:
    def raised(run: Callable[[], Any]) -> tg.TollgateError:
        try:
            run()
        except tg.TollgateError as error:
            return error
        raise AssertionError("nothing was raised")

    stranger = raised(lambda: tg.Tollgate(base_url=URL, api_key="tg_live_nobody").account())
    assert isinstance(stranger, tg.AuthenticationError) and stranger.code == 20000 and stranger.status == 401
    assert stranger.request_id and stranger.request_id.startswith("req_")
    poor = raised(
        lambda: tg.Tollgate(base_url=URL, api_key=os.environ["POOR_KEY"]).analytics.websites.visits(keys="example.com")
    )
    assert isinstance(poor, tg.InsufficientCreditsError) and poor.available == "0.000001" and poor.required
    assert isinstance(raised(lambda: client().model("nothing")), tg.NotFoundError)
    wrong = raised(lambda: client().analytics.websites.visits(keys="not a domain"))
    assert isinstance(wrong, tg.InvalidRequestError)
    nobody = tg.Tollgate(base_url="http://127.0.0.1:9", api_key="x", retries_max=1)
    assert isinstance(raised(nobody.account), tg.ConnectionFailedError)


class Losing(httpx.BaseTransport):
    """Answers get lost on their way back, the first ones."""

    def __init__(self, lost: int) -> None:
        self.lost, self.asked = lost, 0
        self.real = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        answer = self.real.handle_request(request)
        if self.asked <= self.lost:
            answer.read()
            raise httpx.ReadError("lost")
        return answer


@check
def a_lost_answer_is_paid_once() -> None:
    with client() as c:
        def own() -> float:
            return float(c.account().balance)

        before = own()
        c.embeddings.create(model="alpha-embed-3-small", input="once")
        price = before - own()
        losing = Losing(1)
        assert client(http=httpx.Client(transport=losing)).embeddings.create(
            model="alpha-embed-3-small", input="once"
        ).data
        assert losing.asked == 2
        assert abs(before - own() - 2 * price) < 1e-6, (before - own(), price)


@check
def a_paid_get_is_not_repeated_when_its_answer_got_lost() -> None:
    losing = Losing(1)
    try:
        client(http=httpx.Client(transport=losing)).analytics.websites.visits(keys="example.com")
        raise AssertionError("it must not be repeated")
    except tg.ConnectionFailedError:
        assert losing.asked == 1


@check
def repetitions_wait_as_told() -> None:
    told = [
        httpx.Response(503, headers={"retry-after-ms": "50"}, json={}),
        httpx.Response(409, headers={"retry-after-ms": "10"}, json={}),
        httpx.Response(200, json={"input_tokens": 1, "choices": []}),
    ]
    keys: list[str] = []
    delays: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        return told[len(keys) - 1]

    hooks = tg.Hooks(on_retry=lambda method, url, attempt, delay, error: delays.append(delay))
    c = client(http=httpx.Client(transport=httpx.MockTransport(answer)), hooks=hooks)
    c.chat.create(**CHAT)
    assert delays == [0.05, 0.01] and len(set(keys)) == 1 and len(keys) == 3

    refused = httpx.MockTransport(lambda _: httpx.Response(429, headers={"x-should-retry": "false"}, json={}))
    try:
        client(http=httpx.Client(transport=refused)).chat.create(**CHAT)
        raise AssertionError("it must be refused")
    except tg.RateLimitError:
        pass
    later = httpx.MockTransport(lambda _: httpx.Response(503, headers={"retry-after": "60"}, json={}))
    started = time.monotonic()
    try:
        client(http=httpx.Client(transport=later), deadline=30).chat.create(**CHAT)
        raise AssertionError("it must give up")
    except tg.ServerError as error:
        assert error.retry_after == 60 and time.monotonic() - started < 20


@check
def the_asynchronous_twin() -> None:
    async def run() -> None:
        async with tg.AsyncTollgate(base_url=URL, api_key=KEY) as c:
            answers = await asyncio.gather(
                *(c.analytics.websites.ranks(keys=f"site{index}.example") for index in range(5))
            )
            assert all(answer.cost for answer in answers)
            user = (await c.social.users.by_username("walker137")).data
            assert len([tweet async for tweet in c.social.timeline(user.id, max=30)]) == 30
            image = await c.images.generate(prompt="A gate")
            await image.save(ROOM / "b.png")
            assert [event.type async for event in c.images.stream(prompt="x")] == ["image_generation.completed"]
            video = await c.videos.create(prompt="A boat", resolution="480p")
            assert (await video.wait()).status == "COMPLETED"
            assert await video.read()
            assert [job.id async for job in c.jobs.list(limit=5, status="COMPLETED")]
            assert (await c.chat.create(**CHAT)).cost
            said = [chunk.choices[0].delta.content or "" async for chunk in c.chat.stream(**CHAT) if chunk.choices]
            assert len(said) > 2 and "".join(said)
            assert (await c.quote(CHAT)).affordable
            assert (await c.openai().chat.completions.create(**CHAT)).choices
            try:
                await asyncio.wait_for(
                    c.chat.create(model="alpha-5.4", messages=[{"role": "user", "content": "x [[wait=5000]]"}]), 0.2
                )
                raise AssertionError("it must be cancelled")
            except asyncio.TimeoutError:
                pass

    asyncio.run(run())


@check
def the_twins_have_the_same_members() -> None:
    one, other = client(), tg.AsyncTollgate(base_url=URL, api_key=KEY)
    for name in ("analytics", "social", "images", "videos", "jobs", "chat", "responses", "messages", "embeddings"):
        assert dir(getattr(one, name)) == dir(getattr(other, name)), name


for run in checks:
    trace = None
    started = time.monotonic()
    try:
        run()
    except BaseException:
        trace = traceback.format_exc()
    print(json.dumps({"name": run.__name__.replace("_", " "), "trace": trace, "seconds": round(time.monotonic() - started, 2)}), flush=True)
sys.exit(0)
