import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from report import KEY, QUESTION, URL, raises, run

openai = OpenAIProvider(base_url=f"{URL}/v1", api_key=KEY)
anthropic = AnthropicProvider(base_url=f"{URL}/beta", api_key=KEY)
MODELS = [
    OpenAIChatModel("alpha-5.4", provider=openai),
    OpenAIChatModel("beta-sonnet-4-6", provider=openai),
    OpenAIResponsesModel("alpha-5.4", provider=openai),
    AnthropicModel("beta-sonnet-4-6", provider=anthropic),
]


class Person(BaseModel):
    """A person."""

    name: str
    age: int


def answers():
    """an answer, and a stream"""

    async def stream(model):
        async with Agent(model).run_stream("Count.") as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    async def both():
        for model in MODELS:
            assert (await Agent(model).run("Say hello.")).output
            assert len(await stream(model)) > 1

    asyncio.run(both())


def tools():
    """a tool loop, and structured output"""

    async def loop(model):
        agent = Agent(model)
        asked = []

        @agent.tool_plain
        def get_weather(city: str) -> str:
            """The current weather in a city."""
            asked.append(city)
            return "4 degrees"

        assert (await agent.run(QUESTION)).output and len(asked) == 1
        assert isinstance((await Agent(model, output_type=Person).run("Describe a person.")).output, Person)

    async def all_models():
        for model in MODELS:
            await loop(model)

    asyncio.run(all_models())


def errors():
    """errors are its own class, with the status"""
    nope = OpenAIChatModel("nope", provider=openai)
    error = raises(ModelHTTPError, lambda: asyncio.run(Agent(nope, retries=0).run("x")), "does not exist")
    assert error.status_code == 404


run(answers, tools, errors)
