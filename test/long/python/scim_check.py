# Runs the checks of scim2-tester against a server, and prints each that is not clean as a line of JSON.
import json
import sys

from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server

url, token = sys.argv[1:3]
client = SyncSCIMClient(Client(base_url=url, headers={"authorization": f"Bearer {token}"}))
client.discover()
results = check_server(client)
for result in results:
    if result.status not in (Status.SUCCESS, getattr(Status, "COMPLIANT", Status.SUCCESS)):
        print(json.dumps({"status": result.status.name, "title": result.title, "reason": str(result.reason)[:600]}))
print(json.dumps({"checks": len(results)}))
