"""Google's SDK has no metadata of its own at this API; its headers carry the gateway's labels."""

from google import genai
from report import KEY, URL, run


def gemini():
    """google-genai: tags and session of its headers"""
    headers = {"x-tollgate-tags": "program=google-genai", "x-tollgate-session": "g-1"}
    client = genai.Client(api_key=KEY, http_options={"base_url": f"{URL}/gemini", "headers": headers})
    client.models.generate_content(model="delta-3.8-flash", contents="Hello")


run(gemini)
