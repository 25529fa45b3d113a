"""google-genai for Python, with nothing but the address and a key."""

import asyncio

from google import genai
from google.genai import errors, types

from report import KEY, QUESTION, URL, raises, run

MODELS = ["from-google", "beta-sonnet-4-6", "alpha-5.4"]
client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=f"{URL}/gemini"))
CONFIG = types.GenerateContentConfig(max_output_tokens=2000)


def whole():
    """an answer with usage"""
    for model in MODELS:
        answer = client.models.generate_content(model=model, contents="Hello", config=CONFIG)
        assert answer.text and answer.usage_metadata.prompt_token_count > 0


def streamed():
    """a stream, piece by piece to its end"""
    for model in MODELS:
        pieces = list(client.models.generate_content_stream(model=model, contents="Hello [[chunks=20]]", config=CONFIG))
        assert "".join(piece.text or "" for piece in pieces), model
        assert pieces[-1].candidates[0].finish_reason == types.FinishReason.STOP, model
        assert pieces[-1].usage_metadata.candidates_token_count > 0, model


def streamed_async():
    """a stream of the asynchronous client"""

    async def read():
        stream = await client.aio.models.generate_content_stream(model=MODELS[0], contents="Hello", config=CONFIG)
        return "".join([piece.text or "" async for piece in stream])

    assert asyncio.run(read())


def tools():
    """a chat that calls a function, streamed, and takes its result back"""
    schema = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}
    declared = types.FunctionDeclaration(name="get_weather", description="The weather", parameters=schema)
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    for model in MODELS:
        chat = client.chats.create(model=model, config=config)
        calls = [call for piece in chat.send_message_stream(QUESTION) for call in piece.function_calls or []]
        assert [call.name for call in calls] == ["get_weather"], model
        result = types.Part.from_function_response(name="get_weather", response={"output": "12 degrees"})
        assert "12 degrees" in chat.send_message(result).text, model


def counted():
    """models and tokens, and what does not exist"""
    assert any(model.name == f"models/{MODELS[0]}" for model in client.models.list())
    assert client.models.count_tokens(model=MODELS[0], contents="Hello").total_tokens > 0
    for call in (client.models.count_tokens, client.models.generate_content):
        assert raises(errors.ClientError, lambda: call(model="nobody", contents="Hello")).code == 404


def embedded():
    """vectors of one text and of many"""
    model = "alpha-embed-3-small"
    config = types.EmbedContentConfig(output_dimensionality=8, task_type="RETRIEVAL_QUERY")
    many = client.models.embed_content(model=model, contents=["The gate is open.", "Soup."], config=config)
    assert [len(one.values) for one in many.embeddings] == [8, 8]
    one = client.models.embed_content(model=model, contents="The gate is open.", config=config)
    assert one.embeddings[0].values == many.embeddings[0].values
    assert raises(errors.ClientError, lambda: client.models.embed_content(model="nobody", contents="x")).code == 404


run(whole, streamed, streamed_async, tools, counted, embedded)
