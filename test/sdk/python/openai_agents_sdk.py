import asyncio

import openai
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from agents.realtime import RealtimeAgent, RealtimeRunner
from report import KEY, QUESTION, URL, raises, run

set_tracing_disabled(True)


def models():
    client = openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
    return [
        OpenAIResponsesModel(model="alpha-5.4", openai_client=client),
        OpenAIChatCompletionsModel(model="beta-sonnet-4-6", openai_client=client),
        OpenAIChatCompletionsModel(model="gamma-v4-pro", openai_client=client),
    ]


def answers():
    """an answer, and a stream"""

    async def both():
        for model in models():
            agent = Agent(name="greeter", instructions="Be brief.", model=model)
            assert (await Runner.run(agent, "Say hello.")).final_output
            result = Runner.run_streamed(agent, "Count.")
            kinds = [event.type async for event in result.stream_events()]
            assert "raw_response_event" in kinds and result.final_output

    asyncio.run(both())


def tools():
    """a tool loop, also one that goes on from the stored response"""

    async def loop():
        for model in models():
            asked = []

            @function_tool
            def get_weather(city: str) -> str:
                """The current weather in a city."""
                asked.append(city)
                return "4 degrees"

            agent = Agent(name="weather", model=model, tools=[get_weather])
            result = await Runner.run(agent, QUESTION)
            assert result.final_output and len(asked) == 1
            if isinstance(model, OpenAIResponsesModel):
                again = await Runner.run(agent, "Thank you.", previous_response_id=result.last_response_id)
                assert again.final_output

    asyncio.run(loop())


def realtime():
    """a Realtime agent keeps its instructions with all defaults"""

    async def talk():
        agent = RealtimeAgent(name="pirate", instructions="You are a pirate.")
        runner = RealtimeRunner(agent, config={"model_settings": {"model_name": "alpha-realtime-1"}})
        address = f"{URL.replace('http', 'ws')}/v1/realtime?model=alpha-realtime-1"
        session = await runner.run(model_config={"url": address, "api_key": KEY})
        told, left_out = [], []
        async with asyncio.timeout(30), session:
            await session.send_message("Hello there")
            async for event in session:
                assert event.type != "error", event
                raw = event.data if event.type == "raw_model_event" else None
                data = raw.data if raw and raw.type == "raw_server_event" else {}
                if data.get("type") == "session.updated":
                    told.append(data["session"].get("instructions"))
                    left_out += data.get("left_out", [])
                if data.get("type") == "response.done":
                    assert data["response"]["status"] == "completed", data
                    break
        assert "You are a pirate." in told, told
        assert "audio.input.transcription" in left_out, left_out

    asyncio.run(talk())


def errors():
    """errors are the classes of the SDK below it"""
    client = openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
    agent = Agent(name="nobody", model=OpenAIResponsesModel(model="nope", openai_client=client))
    raises(openai.NotFoundError, lambda: asyncio.run(Runner.run(agent, "x")), "does not exist")


run(answers, tools, realtime, errors)
