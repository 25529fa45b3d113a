import openai
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from report import KEY, QUESTION, URL, raises, run

MODELS = ["alpha-5.4", "beta-opus-5", "gamma-v4-pro", "epsilon-k3"]


def legacy(model, **more):
    return OpenAILike(model=model, api_base=f"{URL}/v1", api_key=KEY, max_retries=0, **more)


def llm(model):
    return legacy(model, is_chat_model=True, is_function_calling_model=True)


def get_weather(city: str) -> str:
    """The current weather in a city."""
    return "4 degrees"


def answers():
    """an answer, and a stream, with the temperature that it always sends"""
    for model in MODELS:
        assert llm(model).complete("Say hello.").text
        pieces = [piece.delta for piece in llm(model).stream_chat([ChatMessage(role="user", content="Count.")])]
        assert "".join(piece or "" for piece in pieces)


def defaults():
    """an answer, a stream and a conversation by legacy completions, as it asks by default"""
    for model in MODELS:
        assert legacy(model).complete("Say hello.").text
        assert "".join(piece.delta or "" for piece in legacy(model).stream_complete("Count."))
        assert legacy(model).chat([ChatMessage(role="user", content="Say hello.")]).message.content


def tools():
    """a tool, there and back again"""
    weather = FunctionTool.from_defaults(fn=get_weather)
    for model in MODELS:
        asked = llm(model).chat_with_tools([weather], user_msg=QUESTION)
        calls = llm(model).get_tool_calls_from_response(asked)
        assert calls[0].tool_name == "get_weather"
        result = ChatMessage(role="tool", content="4 degrees", additional_kwargs={"tool_call_id": calls[0].tool_id})
        history = [ChatMessage(role="user", content=QUESTION), asked.message, result]
        assert llm(model).chat(history).message.content


def errors():
    """errors are the classes of the SDK below it"""
    raises(openai.NotFoundError, lambda: llm("nope").complete("x"), "does not exist")
    raises(openai.RateLimitError, lambda: llm("alpha-5.4").complete("[[429]]"))


run(answers, defaults, tools, errors)
