// The Anthropic SDK for TypeScript against Tollgate. Run: TOLLGATE_KEY=tg_live_… npx node examples/clients/anthropic.ts
import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({
  baseURL: `${process.env.TOLLGATE ?? 'http://127.0.0.1:8080'}/beta`,
  apiKey: process.env.TOLLGATE_KEY ?? '',
})

const message = await client.messages.create({
  model: 'beta-sonnet-5',
  max_tokens: 500,
  messages: [{ role: 'user', content: 'Say hello in five words.' }],
})
for (const block of message.content) if (block.type === 'text') console.log(block.text)

const stream = client.messages.stream({
  model: 'beta-haiku-4-5',
  max_tokens: 500,
  messages: [{ role: 'user', content: 'Count to ten.' }],
})
stream.on('text', (text) => process.stdout.write(text))
const { usage } = await stream.finalMessage()
console.log(`\n${usage.input_tokens} tokens in, ${usage.output_tokens} out`)

const { input_tokens } = await client.messages.countTokens({
  model: 'beta-sonnet-5',
  messages: [{ role: 'user', content: 'How long is this?' }],
})
console.log(`${input_tokens} input tokens, counted free of charge`)
