"""Calls whose metadata and users the gateway stores as labels, each by the SDK's own members."""

import anthropic
import openai
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from report import KEY, URL, run


def openai_chat():
    """openai: metadata and user of a chat"""
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
    client.chat.completions.create(
        model="alpha-5.4",
        messages=[{"role": "user", "content": "Hello"}],
        metadata={"program": "openai-chat"},
        user="u-1",
    )


def openai_responses():
    """openai: metadata and safety identifier of a response"""
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
    client.responses.create(
        model="alpha-5.4", input="Hello", metadata={"program": "openai-responses"}, safety_identifier="u-2"
    )


def anthropic_messages():
    """anthropic: user id of the metadata"""
    client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0)
    client.messages.create(
        model="beta-sonnet-5",
        max_tokens=64,
        messages=[{"role": "user", "content": "Hello"}],
        metadata={"user_id": "u-3"},
    )


def langchain_openai():
    """langchain-openai: what its model sends beside its own settings"""
    metadata = {"metadata": {"program": "langchain-openai"}}
    model = ChatOpenAI(
        model="alpha-5.4", base_url=f"{URL}/v1", api_key=KEY, model_kwargs={"user": "u-4"}, extra_body=metadata
    )
    # LangChain's own metadata is for its traces, and is not sent.
    model.invoke("Hello", config={"metadata": {"trace": "x"}})


def langchain_anthropic():
    """langchain-anthropic: the user id of its model"""
    extra = {"extra_body": {"metadata": {"user_id": "u-5"}}}
    model = ChatAnthropic(model="beta-sonnet-5", base_url=URL, api_key=KEY, max_retries=0, model_kwargs=extra)
    model.invoke("Hello")


run(openai_chat, openai_responses, anthropic_messages, langchain_openai, langchain_anthropic)
