"""Runs checks, and says of each on a line of its own how it went."""

import json
import os
import traceback

URL = os.environ["GATEWAY"]
KEY = os.environ["GATEWAY_KEY"]
QUESTION = "What is the weather in Oslo? Use get_weather."


def run(*checks):
    for check in checks:
        line = {"name": check.__doc__, "trace": None}
        try:
            check()
        except Exception:
            line["trace"] = traceback.format_exc()
        print(json.dumps(line), flush=True)


def raises(kinds, call, words=""):
    """The error that `call` ends with."""
    try:
        call()
    except kinds as error:
        assert words in str(error), f"{words!r} is not in {error}"
        return error
    raise AssertionError(f"{kinds} was expected")
