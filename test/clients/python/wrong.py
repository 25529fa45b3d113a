"""What must not pass the type check: each marked line is an error, and an error that is not there is one as well."""

from tollgate_client import Tollgate

client = Tollgate(api_key="x")
websites, keywords = client.analytics.websites, client.analytics.keywords


def right() -> None:
    answer = websites.visits(keys="example.com", country="us", web_source="Desktop", latest="28d")
    visits: float | None = (answer.data or {})["example.com"].total_visits
    charge: str = answer.cost.charge if answer.cost else ""
    print(visits, charge, client.images.generate(prompt="x", size="16:9").data[0].url)

    for chunk in client.chat.stream(model="m", messages=[{"role": "user", "content": "x"}]):
        piece: str = chunk.choices[0].delta.content or ""
        print(piece)
    for event in client.responses.stream(model="m", input="x"):
        print(len(event.delta or ""))
    for said in client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]):
        print(len((said.delta.text if said.delta else None) or ""))
    for drawn in client.images.stream(prompt="x"):
        print([picture.url for picture in drawn.data or []])


def wrong() -> None:
    websites.visits(keys="example.com", web_source="Phone")  # type: ignore[arg-type]
    websites.visits(country=840)  # type: ignore[call-arg]
    websites.visits(keys="example.com", country="xx")  # type: ignore[arg-type]
    websites.visits(keys="example.com", time_granularity="Weekly")  # type: ignore[arg-type]
    websites.history_visits(keys="example.com", latest="28d")  # type: ignore[arg-type]
    websites.history_visits(keys="example.com", is_window=True)  # type: ignore[arg-type]
    websites.backlinks(keys="example.com")  # type: ignore[call-arg]
    keywords.suggestions(keyword="x", type="Near")  # type: ignore[arg-type]
    websites.geography(keys="example.com", page_size="5")  # type: ignore[arg-type]
    client.social.users.by_username("x", user_fields=["height"])  # type: ignore[list-item]
    client.social.timeline("1", exclude=["likes"])  # type: ignore[list-item]
    client.images.generate(prompt="x", size="10x10")  # type: ignore[arg-type]
    client.images.generate(prompt="x", qualty="low")  # type: ignore[call-arg]
    client.videos.create(prompt="x", ratio="5:4")  # type: ignore[arg-type]
    client.quote({}, endpoint="models")  # type: ignore[arg-type]
    print(client.account().fortune)  # type: ignore[attr-defined]
    for chunk in client.chat.stream(model="m", messages=[{"role": "user", "content": "x"}]):
        print((chunk.choices[0].delta.content or "") * 2.5)  # type: ignore[operator]
        print(chunk["choices"])  # type: ignore[index]
