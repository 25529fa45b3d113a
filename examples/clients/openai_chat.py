# The OpenAI SDK for Python against Tollgate: pip install openai; TOLLGATE_KEY=tg_live_… python openai_chat.py
import os

from openai import APIStatusError, OpenAI

client = OpenAI(
    base_url=os.environ.get("TOLLGATE", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ["TOLLGATE_KEY"],
)

answer = client.chat.completions.create(
    model="beta-sonnet-5",
    messages=[{"role": "user", "content": "Say hello in five words."}],
)
print(answer.choices[0].message.content)

for chunk in client.chat.completions.create(
    model="alpha-5.4",
    messages=[{"role": "user", "content": "Count to ten."}],
    stream=True,
):
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print()

try:
    client.chat.completions.create(model="no-such-model", messages=[{"role": "user", "content": "Hello!"}])
except APIStatusError as error:
    print(error.status_code, error.message, error.request_id)
