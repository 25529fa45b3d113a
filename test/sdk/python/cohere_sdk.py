"""Reranks with Cohere's own SDK; prints what was ranked and how a refusal reads."""

import json
import os

import cohere

client = cohere.ClientV2(api_key=os.environ["GATEWAY_KEY"], base_url=os.environ["GATEWAY"])
asked = {
    "query": "When does the gate open? The gate opens at",
    "documents": ["A recipe for onion soup.", "The gate opens at dawn.", "The gate is closed."],
    "top_n": 2,
}
ranked = client.rerank(model="alpha-rerank-1", **asked)
assert ranked.meta is not None and ranked.meta.billed_units is not None
try:
    client.rerank(model="alpha-5.4", **asked)
    refusal = "none"
except cohere.core.api_error.ApiError as error:
    refusal = json.dumps(error.body)
print(json.dumps({"ranked": [result.index for result in ranked.results], "refusal": refusal}))
