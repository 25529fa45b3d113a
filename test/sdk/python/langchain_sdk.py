import openai
from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel
from report import KEY, QUESTION, URL, raises, run


def chat(model="alpha-5.4", **more):
    return ChatOpenAI(model=model, base_url=f"{URL}/v1", api_key=KEY, max_retries=0, **more)


def models():
    return [
        chat(),
        chat(use_responses_api=True),
        chat("beta-opus-5", temperature=0),
        chat("epsilon-k3"),
        ChatAnthropic(model="beta-sonnet-4-6", base_url=f"{URL}/beta", api_key=KEY, max_retries=0),
    ]


@tool
def get_weather(city: str) -> str:
    """The current weather in a city."""
    return "4 degrees"


class Person(BaseModel):
    """A person."""

    name: str
    age: int


def answers():
    """an answer, and a stream"""
    for model in models():
        assert model.invoke("Say hello.").text
        pieces = [piece.text for piece in model.stream("Count.")]
        assert len([piece for piece in pieces if piece]) > 1


def tools():
    """a tool, there and back again"""
    for model in models():
        bound = model.bind_tools([get_weather])
        turns = [HumanMessage(QUESTION)]
        turns.append(bound.invoke(turns))
        call = turns[-1].tool_calls[0]
        turns.append(ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]))
        assert not bound.invoke(turns).tool_calls


def legacy():
    """the class of legacy completions, with its defaults: an answer, a stream, two prompts at once"""
    for model in ["alpha-5.4", "beta-sonnet-4-6", "gamma-v4-pro"]:
        llm = OpenAI(model=model, base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
        assert llm.invoke("Say hello.")
        assert len([piece for piece in llm.stream("Count.") if piece]) > 1
        both = llm.generate(["Say hello.", "Count."])
        assert all(made[0].text for made in both.generations) and both.llm_output["token_usage"]["total_tokens"]


def structured():
    """structured output, also by a named tool"""
    for model, method in [(chat(), "json_schema"), (chat(), "function_calling"), (chat("epsilon-k3"), "function_calling")]:
        assert isinstance(model.with_structured_output(Person, method=method).invoke("Describe a person."), Person)


def errors():
    """errors are its own classes and those of the SDK below it"""
    raises(openai.NotFoundError, lambda: chat("nope").invoke("x"), "does not exist")
    raises(openai.RateLimitError, lambda: chat().invoke("[[429]]"))
    long = "[[400 Input tokens exceed the configured limit of 1000 tokens.]]"
    raises(ContextOverflowError, lambda: chat().invoke(long))
    raises(ContextOverflowError, lambda: chat(use_responses_api=True).invoke(long))


run(answers, legacy, tools, structured, errors)
