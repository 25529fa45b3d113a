"""Waiting, in the two ways of waiting."""

import asyncio
import time


async def pause_async(seconds: float) -> None:
    await asyncio.sleep(seconds)


def pause_sync(seconds: float) -> None:
    time.sleep(seconds)
