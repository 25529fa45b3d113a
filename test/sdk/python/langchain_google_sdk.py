"""LangChain for Google's models, with nothing but the address and a key."""

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI, GoogleGenerativeAIEmbeddings

from report import KEY, QUESTION, URL, raises, run

ADDRESS = f"{URL}/gemini"
MODELS = ["delta-own", "beta-sonnet-5", "alpha-5.4"]


def chat(model):
    return ChatGoogleGenerativeAI(model=model, base_url=ADDRESS, google_api_key=KEY, max_retries=1)


@tool
def get_weather(city: str) -> str:
    """The current weather in a city."""
    return "12 degrees"


def answers():
    """an answer, and a stream to its end"""
    for model in MODELS:
        answer = chat(model).invoke("Say hello.")
        assert answer.text and answer.usage_metadata["output_tokens"] > 0, model
        pieces = list(chat(model).stream("Hello [[chunks=20]]"))
        assert "".join(piece.text for piece in pieces), model
        assert any(piece.response_metadata.get("finish_reason") == "STOP" for piece in pieces), model


def tools():
    """a tool, there and back again"""
    for model in MODELS:
        bound = chat(model).bind_tools([get_weather])
        turns = [HumanMessage(QUESTION)]
        turns.append(bound.invoke(turns))
        (call,) = turns[-1].tool_calls
        turns.append(ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]))
        last = bound.invoke(turns)
        assert not last.tool_calls and "12 degrees" in last.text, (model, last)


def embedded():
    """vectors"""
    model = GoogleGenerativeAIEmbeddings(model="alpha-embed-3-small", base_url=ADDRESS, google_api_key=KEY)
    one, other = model.embed_documents(["The gate is open.", "Soup."])
    assert len(one) == len(other) == 1536
    assert model.embed_query("The gate is open.") == one


def refused():
    """what does not exist"""
    raises(Exception, lambda: chat("nobody").invoke("Hello"), "does not exist")


run(answers, tools, embedded, refused)
