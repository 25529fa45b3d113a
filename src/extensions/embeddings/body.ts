// The body of an embeddings request, in the form of its vendors.
import * as z from 'zod'
import { listOf, wholeNumber } from '../../catalog/body.ts'
import { words } from '../../kernel/words.ts'
import { membersOf } from '../../protocols/text/request-members.ts'

const text = z.string().min(1)
const tokens = z.array(z.int('the number of a token').min(0, 'the number of a token')).min(1)
const most = { most: 2048, of: 'inputs' }

export const embeddingsBody = z
  .looseObject({
    model: z.string().describe('An embedding model from GET /v1/models, such as alpha-embed-3-small.'),
    input: z
      .union(
        [
          text.describe('One text.'),
          listOf(text, most).describe('Texts.'),
          tokens.describe('One text as tokens.'),
          listOf(tokens.describe('A text as tokens.'), most).describe('Such texts.'),
        ],
        'a string or an array of strings or of tokens',
      )
      .describe('What to embed: one input, or up to 2048 of them. None may be empty.'),
    dimensions: wholeNumber(1).nullish().describe('How many numbers a vector has, where the model can shorten it.'),
    encoding_format: z
      .enum(['float', 'base64'])
      .nullish()
      .meta({ default: 'float', description: 'base64: the vector as little-endian 32-bit floats.' }),
    user: z.string().nullish().describe('Your own name for the end user.'),
  })
  .meta({ examples: [{ model: 'alpha-embed-3-small', input: ['The gate is open.', 'The barrier is up.'] }] })

export const EMBEDDINGS_MEMBERS = membersOf(
  {
    forwarded: [
      ...Object.keys(embeddingsBody.shape),
      ...words('input_type task truncate truncate_prompt_tokens normalized embedding_type output_dtype late_chunking'),
    ],
    limits: [],
  },
  { refused: words('messages images inputs image image_url documents') },
)
