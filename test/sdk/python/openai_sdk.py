import openai
from report import KEY, QUESTION, URL, raises, run

client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
WEATHER = {
    "name": "get_weather",
    "description": "The current weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
MODELS = ["alpha-5.4", "beta-sonnet-4-6", "gamma-v4-pro"]


def user(text):
    return [{"role": "user", "content": text}]


def chat():
    """chat: an answer, and a stream with its usage"""
    for model in MODELS:
        answer = client.chat.completions.create(model=model, messages=user("Say hello."))
        assert answer.choices[0].message.content and answer.usage.total_tokens > 0
        stream = client.chat.completions.create(
            model=model, messages=user("Count."), stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert chunks[-1].usage.total_tokens > 0


def chat_tool():
    """chat: a tool, there and back again"""
    tools = [{"type": "function", "function": WEATHER}]
    for model in MODELS:
        first = client.chat.completions.create(model=model, messages=user(QUESTION), tools=tools)
        call = first.choices[0].message.tool_calls[0]
        assert call.function.name == "get_weather"
        messages = user(QUESTION) + [
            first.choices[0].message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": "4 degrees"},
        ]
        second = client.chat.completions.create(model=model, messages=messages, tools=tools)
        assert second.choices[0].finish_reason == "stop"


def responses():
    """Responses: an answer, a stream and a tool"""
    for model in MODELS:
        assert client.responses.create(model=model, input="Say hello.").output_text
        with client.responses.stream(model=model, input="Count.") as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_response()
        assert kinds[-1] == "response.completed" and final.output_text and final.usage.total_tokens > 0
        asked = client.responses.create(model=model, input=QUESTION, tools=[{"type": "function", **WEATHER}])
        call = next(item for item in asked.output if item.type == "function_call")
        items = user(QUESTION) + [item.model_dump(exclude_none=True) for item in asked.output]
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": "4 degrees"})
        assert client.responses.create(model=model, input=items).output_text


def stored():
    """Responses: what is stored can be retrieved, continued and deleted"""
    first = client.responses.create(model="alpha-5.4", input="My name is Ada.")
    assert client.responses.retrieve(first.id).output_text == first.output_text
    again = client.responses.create(model="alpha-5.4", input="And now?", previous_response_id=first.id)
    assert again.previous_response_id == first.id
    assert client.responses.input_items.list(first.id).data
    client.responses.delete(first.id)
    raises(openai.NotFoundError, lambda: client.responses.retrieve(first.id))


def errors():
    """errors are the classes of the SDK, with a code that frameworks know"""

    def ask(text, model="alpha-5.4"):
        return lambda: client.chat.completions.create(model=model, messages=user(text))

    raises(openai.NotFoundError, ask("x", "nope"), "does not exist")
    raises(openai.RateLimitError, ask("[[429]]"))
    raises(openai.InternalServerError, ask("[[500]]"))
    long = raises(openai.BadRequestError, ask("[[400 This model's maximum context length is 1000 tokens.]]"))
    assert long.code == "context_length_exceeded", long.code
    wrong = openai.OpenAI(base_url=f"{URL}/v1", api_key="tg_live_wrong", max_retries=0)
    raises(openai.AuthenticationError, wrong.models.list)
    stream = client.chat.completions.create(model="gamma-v4-pro", messages=user("[[cut=3]] [[chunks=9]]"), stream=True)
    raises(openai.APIError, lambda: list(stream))


run(chat, chat_tool, responses, stored, errors)
