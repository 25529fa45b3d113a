import asyncio
import json
import re

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from report import KEY, URL, run

USER = "49278066"


async def with_client(work, mode="auto", path="/mcp"):
    async with create_mcp_http_client(headers={"authorization": f"Bearer {KEY}"}) as http:
        async with Client(streamable_http_client(f"{URL}{path}", http_client=http), mode=mode) as client:
            return await work(client)


def example(tool):
    """What the description shows, or nothing."""
    found = re.search(r"Example: (\{.*\})\.", tool.description)
    return json.loads(found[1]) if found else {}


async def call_all(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert len(tools) == 39, list(tools)
    job = None
    for name, tool in tools.items():
        if name in ("get_video", "wait_for_video"):
            arguments = {"job_id": job}
        else:
            arguments = example(tool)
        if "id" in arguments:
            arguments["id"] = USER
        result = await client.call_tool(name, arguments)
        assert not result.is_error, f"{name}: {result.content}"
        assert result.structured_content is not None and result.content[0].text, name
        assert result.meta["tollgate/requestId"].startswith("req_"), name
        if name == "create_video":
            job = result.structured_content["jobId"]
        if name == "wait_for_video":
            assert result.structured_content["status"] == "COMPLETED", result.structured_content
    wrong = await client.call_tool("website_visits", {"keys": "https://example.com"})
    assert wrong.is_error and "domain" in wrong.content[0].text, wrong


def newest():
    """every tool, by the newest revision that both speak"""
    asyncio.run(with_client(call_all))


def legacy():
    """every tool, by the revisions with a handshake"""
    asyncio.run(with_client(call_all, mode="legacy"))


run(newest, legacy)
