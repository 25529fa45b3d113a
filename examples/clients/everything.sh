#!/usr/bin/env bash
# One call of each kind with curl. Run: TOLLGATE_KEY=tg_live_… examples/clients/everything.sh
set -euo pipefail
tollgate=${TOLLGATE:-http://127.0.0.1:8080}

get() { curl -sS --fail-with-body -H "Authorization: Bearer $TOLLGATE_KEY" "$tollgate$1"; echo; }
post() { curl -sS --fail-with-body -H "Authorization: Bearer $TOLLGATE_KEY" -H 'Content-Type: application/json' -d "$2" "$tollgate$1"; echo; }

get /v1/account
get /v1/models/alpha-5.4
post /v1/quote '{"model":"alpha-5.4","messages":[{"role":"user","content":"Hello!"}]}'
post /v1/chat-completions '{"model":"alpha-5.4","messages":[{"role":"user","content":"Hello!"}]}'
post /v1/chat-completions '{"model":"zeta-m3","stream":true,"messages":[{"role":"user","content":"Hello!"}]}'
post /alpha/responses '{"model":"alpha-5.4","input":"Hello!"}'
post /beta/v1/messages '{"model":"beta-haiku-4-5","max_tokens":200,"messages":[{"role":"user","content":"Hello!"}]}'
post /v1/embeddings '{"model":"alpha-embed-3-small","input":["Hello!","Good day!"],"dimensions":8}'
get '/v1/social/users?username=walker137&user.fields=public_metrics'
get '/v1/siteanalytics/websites/visits?keys=example.com'
post /alpha/v1/images/generations '{"model":"alpha-image-2","prompt":"A toll gate at dawn"}'

# A video is a job: ask until it has ended.
job=$(post /v1/video/seedance '{"model":"videogen-2.0","prompt":"A gate opens","duration":5}' | sed 's/.*"jobId":"\([0-9]*\)".*/\1/')
until get "/v1/jobs/$job" | tee /dev/stderr | grep -qE '"status":"(COMPLETED|FAILED|CANCELLED)"'; do sleep 5; done
