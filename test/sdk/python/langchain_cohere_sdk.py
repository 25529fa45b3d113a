"""Reranks with LangChain; prints what was ranked and how a refusal reads."""

import json
import os

from langchain_cohere import CohereRerank

documents = ["A recipe for onion soup.", "The gate opens at dawn.", "The gate is closed."]
query = "When does the gate open? The gate opens at"


def reranker(model: str) -> CohereRerank:
    return CohereRerank(
        model=model, cohere_api_key=os.environ["GATEWAY_KEY"], base_url=os.environ["GATEWAY"], top_n=2
    )


ranked = reranker("alpha-rerank-1").rerank(documents, query)
try:
    reranker("alpha-5.4").rerank(documents, query)
    refusal = "none"
except Exception as error:
    refusal = str(error)
print(json.dumps({"ranked": [result["index"] for result in ranked], "refusal": refusal}))
