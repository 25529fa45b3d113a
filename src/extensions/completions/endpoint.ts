// The legacy completions endpoint: body and answer. Each prompt is served as a chat with one message.
import * as z from 'zod'
import { listOf, schemaOf, wholeNumber } from '../../catalog/body.ts'
import { having, integer, list, nullable, object, string } from '../../catalog/endpoint.ts'
import { defineEndpoints } from '../../catalog/generation.ts'

/** As many as LangChain sends at once. */
const PROMPTS_MAX = 20

const absent = (why: string) => z.null(`is not offered: ${why}.`).optional().describe(`Not offered: ${why}.`)

export const completionsBody = z
  .looseObject({
    model: z.string().describe('A text model from GET /v1/models.'),
    prompt: z
      .union(
        [
          z.string().min(1, 'must not be empty.').describe('One prompt.'),
          listOf(z.string().min(1, 'must not be empty.'), { most: PROMPTS_MAX, of: 'prompts' }).describe('Prompts.'),
        ],
        'a string or an array of strings',
      )
      .describe('What to continue: one prompt, or up to 20 of them. Each becomes a message of the user.'),
    max_tokens: wholeNumber(1).nullish().describe('As in chat.'),
    temperature: z.number().nullish().describe('As in chat.'),
    top_p: z.number().nullish().describe('As in chat.'),
    stop: z
      .union([z.string(), z.array(z.string())], 'a string or an array of strings')
      .nullish()
      .describe('As in chat.'),
    n: wholeNumber(1).nullish().describe('How many answers to each prompt. Some models give only 1.'),
    stream: z.boolean('true or false').nullish().describe('Server-sent events; with one prompt only.'),
    suffix: z.literal('', 'is not offered: models that chat do not fill in.').nullish().describe('Not offered.'),
    echo: z.literal(false, 'is not offered: join the prompt and the text.').nullish().describe('Not offered.'),
    logprobs: absent('a chat model reports other ones'),
    best_of: z
      .literal(1, 'is not offered: only one answer is made for each choice.')
      .nullish()
      .describe('Not offered.'),
    messages: absent('send it to /v1/chat/completions'),
  })
  .meta({ examples: [{ model: 'alpha-5.4', prompt: 'Say hello in five words.', max_tokens: 50 }] })

const answer = having('id object created model choices', {
  id: string,
  object: { const: 'text_completion' },
  created: integer,
  model: string,
  choices: list(object({ text: string, index: integer, logprobs: { type: 'null' }, finish_reason: nullable(string) })),
  usage: object({ prompt_tokens: integer, completion_tokens: integer, total_tokens: integer }),
})

export const COMPLETIONS = defineEndpoints({
  completions: {
    route: 'POST /v1/completions',
    aliases: ['/alpha/completions', '/alpha/v1/completions'],
    tag: 'Text',
    surface: 'chat',
    sells: 'text',
    format: 'openai-chat',
    streams: true,
    several: true,
    after: 'chat',
    title: 'Completion (legacy)',
    description:
      'The completions of older programs, answered by any text model that chats: each prompt becomes a chat with one message, at the price of that chat. Several prompts are several calls. An extension of the contract.',
    returns: 'A `text_completion`, or with `stream: true` events of the same.',
    body: schemaOf(completionsBody),
    answer,
  },
})
