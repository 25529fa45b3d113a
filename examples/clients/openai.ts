// The OpenAI SDK for TypeScript against Tollgate. Run: TOLLGATE_KEY=tg_live_… npx node examples/clients/openai.ts
import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: `${process.env.TOLLGATE ?? 'http://127.0.0.1:8080'}/v1`,
  apiKey: process.env.TOLLGATE_KEY,
})

// Every text model answers here, whichever vendor it comes from.
const answer = await client.chat.completions.create({
  model: 'beta-sonnet-5',
  messages: [{ role: 'user', content: 'Say hello in five words.' }],
})
console.log(answer.choices[0]?.message.content)

const stream = await client.chat.completions.create({
  model: 'alpha-5.4',
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: 'user', content: 'Count to ten.' }],
})
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? '')
  if (chunk.usage) console.log(`\n${chunk.usage.total_tokens} tokens`)
}

// What the call cost is in the headers.
const { response } = await client.chat.completions
  .create({ model: 'gamma-v4-flash', messages: [{ role: 'user', content: 'Hello!' }] })
  .withResponse()
console.log(`${response.headers.get('x-tollgate-charge')} credits, ${response.headers.get('x-request-id')}`)

// The Responses protocol, for the models that offer it.
const reply = await client.responses.create({ model: 'alpha-5.4', input: 'Hello!' })
console.log(reply.output_text)

// Errors have the status, the message and the request id.
try {
  await client.chat.completions.create({ model: 'no-such-model', messages: [{ role: 'user', content: 'Hello!' }] })
} catch (error) {
  if (!(error instanceof OpenAI.APIError)) throw error
  console.log(error.status, error.message, error.requestID)
}
