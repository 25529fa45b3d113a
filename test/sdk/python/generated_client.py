"""Uses the package that openapi-python-client has made in the directory given."""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True

from generated import AuthenticatedClient  # noqa: E402
from generated.api.account_and_models import account, quote  # noqa: E402
from generated.api.site_analytics import siteanalytics_websites_visits  # noqa: E402
from generated.api.social_data import social_users, social_users_id_tweets  # noqa: E402
from generated.api.text import chat  # noqa: E402
from generated.models import ChatRequest, QuoteRequest  # noqa: E402

client = AuthenticatedClient(base_url=os.environ["GATEWAY"], token=os.environ["GATEWAY_KEY"])

request = ChatRequest.from_dict(
    {"model": "alpha-5.4", "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]}
)
answer = chat.sync(client=client, body=request)
visits = siteanalytics_websites_visits.sync(client=client, keys="example.com")
user = social_users.sync(client=client, username="walker137", user_fields="created_at,public_metrics")
tweets = social_users_id_tweets.sync(user.data.id, client=client, max_results=7, exclude="replies")
asked = quote.sync(client=client, body=QuoteRequest.from_dict(request.to_dict()))
own = account.sync(client=client)
refused = siteanalytics_websites_visits.sync_detailed(client=client, keys="not a domain")
print(
    json.dumps(
        {
            "text": answer.choices[0].message.content,
            "visited": visits.data["example.com"].total_visits,
            "followers": user.data.public_metrics.followers_count,
            "tweets": len(tweets.data),
            "most": asked.data.cost_at_most,
            "available": own.data.available,
            "refused": int(refused.status_code),
        }
    )
)
