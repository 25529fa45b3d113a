// The AI SDK against Tollgate. Run: TOLLGATE_KEY=tg_live_… npx node examples/clients/ai-sdk.ts
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, streamText } from 'ai'

const tollgate = process.env.TOLLGATE ?? 'http://127.0.0.1:8080'
const apiKey = process.env.TOLLGATE_KEY ?? ''

// Chat completions: every text model.
const any = createOpenAICompatible({ name: 'tollgate', baseURL: `${tollgate}/v1`, apiKey })
// The Responses protocol: the alpha models.
const alpha = createOpenAI({ baseURL: `${tollgate}/v1`, apiKey })
// The Messages protocol: the beta models.
const beta = createAnthropic({ baseURL: `${tollgate}/beta/v1`, apiKey })

const { text } = await generateText({ model: any('epsilon-k3'), prompt: 'Say hello in five words.' })
console.log(text)

for await (const piece of streamText({ model: alpha('alpha-5.4'), prompt: 'Count to ten.' }).textStream)
  process.stdout.write(piece)
console.log()

const answer = await generateText({ model: beta('beta-sonnet-5'), prompt: 'Say goodbye.' })
console.log(answer.text, answer.usage.totalTokens)
