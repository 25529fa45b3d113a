import anthropic
from report import KEY, QUESTION, URL, raises, run

client = anthropic.Anthropic(base_url=f"{URL}/beta", api_key=KEY, max_retries=0)
WEATHER = {
    "name": "get_weather",
    "description": "The current weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
MODELS = ["beta-sonnet-4-6", "alpha-5.4", "gamma-v4-pro"]


def ask(text, model="beta-sonnet-4-6", **more):
    return {"model": model, "max_tokens": 2000, "messages": [{"role": "user", "content": text}], **more}


def messages():
    """a message, and a stream"""
    for model in MODELS:
        answer = client.messages.create(**ask("Say hello.", model))
        assert answer.stop_reason == "end_turn" and answer.usage.output_tokens > 0
        with client.messages.stream(**ask("Count.", model)) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        assert text and final.stop_reason == "end_turn" and final.usage.output_tokens > 0


def tool():
    """a tool, there and back again"""
    for model in MODELS:
        given = ask(QUESTION, model, tools=[WEATHER])
        first = client.messages.create(**given)
        call = next(block for block in first.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "4 degrees"}
        given["messages"] += [
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ]
        assert client.messages.create(**given).stop_reason == "end_turn"


def runner():
    """its own tool loop ends, by threads where the vendor keeps them and without where it does not"""
    if not hasattr(client.beta.messages, "tool_runner"):
        return
    asked = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The current weather in a city."""
        asked.append(city)
        return "4 degrees"

    for model in MODELS:
        last = client.beta.messages.tool_runner(**ask(QUESTION, model, tools=[get_weather])).until_done()
        assert last.stop_reason == "end_turn", last
    assert len(asked) == len(MODELS), asked


def errors():
    """errors are the classes of the SDK, with the message that says what to do"""
    raises(anthropic.NotFoundError, lambda: client.messages.create(**ask("x", "nope")), "does not exist")
    raises(anthropic.NotFoundError, lambda: client.models.retrieve("nope"), "does not exist")
    raises(anthropic.RateLimitError, lambda: client.messages.create(**ask("[[429]]")))
    raises(anthropic.InternalServerError, lambda: client.messages.create(**ask("[[500]]")))
    raises(anthropic.BadRequestError, lambda: client.messages.create(**{**ask("x"), "max_tokens": -1}), "max_tokens")
    wrong = anthropic.Anthropic(base_url=f"{URL}/beta", api_key="tg_live_wrong", max_retries=0)
    raises(anthropic.AuthenticationError, wrong.models.list)

    def cut():
        with client.messages.stream(**ask("A story. [[cut=3]] [[chunks=20]]")) as stream:
            return stream.get_final_message()

    raises(anthropic.APIError, cut)


def counting():
    """tokens are counted, models are listed"""
    counted = client.messages.count_tokens(model="beta-opus-5", messages=[{"role": "user", "content": "How many?"}])
    assert counted.input_tokens > 0
    assert "beta-opus-5" in [model.id for model in client.models.list()]


run(messages, tool, runner, counting, errors)
