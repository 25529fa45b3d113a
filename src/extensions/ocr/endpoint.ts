// The endpoint for documents (OCR), in the form of Mistral's API.
import * as z from 'zod'
import { schemaOf, wholeNumber } from '../../catalog/body.ts'
import { free, having, integer, list, loose, nullable, string } from '../../catalog/endpoint.ts'
import { defineEndpoints } from '../../catalog/generation.ts'

/** The maximum of all vendors of the format; a model's `pagesMax` may be lower. */
export const PAGES_MAX = 1000

const address = z.string().min(1).max(100_000_000)
const document = z
  .union(
    [
      z.looseObject({
        type: z.literal('document_url').nullish(),
        document_url: address.describe('An https address, or a data URI with the file itself.'),
        document_name: z.string().nullish(),
      }),
      z.looseObject({
        type: z.literal('image_url').nullish(),
        image_url: z
          .union([address, z.looseObject({ url: address })], 'a string or {url}')
          .describe('A picture, which is one page: an https address or a data URI.'),
      }),
    ],
    'an object with "document_url" or "image_url"',
  )
  .describe('What is read: `{type: "document_url", document_url}` or `{type: "image_url", image_url}`.')

export const ocrBody = z
  .looseObject({
    model: z.string().describe('An OCR model from GET /v1/models, such as alpha-ocr-1.'),
    document,
    pages: z
      .union([z.string().min(1).max(4000), z.array(wholeNumber(0)).min(1).max(PAGES_MAX)], 'a list or a range of pages')
      .nullish()
      .describe(
        'Only these pages, counted from 0: `[0, 1, 5]` or `"0-4,7"`. Absent: all. The hold covers these pages.',
      ),
    include_image_base64: z.boolean().nullish().describe('Whether the pictures of the pages come with the answer.'),
    image_limit: wholeNumber(0).nullish().describe('The most pictures to take out.'),
    image_min_size: wholeNumber(0).nullish().describe('Smaller pictures, in pixels, are left where they are.'),
    bbox_annotation_format: annotation(
      'A JSON schema by which each picture is described. Costs the price with annotations.',
    ),
    document_annotation_format: annotation(
      'A JSON schema by which the whole document is described. Costs the price with annotations.',
    ),
    document_annotation_prompt: z.string().nullish().describe('What to look for when the document is described.'),
    table_format: z.enum(['markdown', 'html']).nullish().describe('How tables are given; absent: within the text.'),
    extract_header: z.boolean().nullish().describe('Headers of pages apart from their text.'),
    extract_footer: z.boolean().nullish().describe('Footers of pages apart from their text.'),
    include_blocks: z.boolean().nullish().describe('The blocks of each page with their places.'),
    confidence_scores_granularity: z.enum(['word', 'page', 'block']).nullish().describe('How sure the model is.'),
  })
  .meta({
    examples: [
      {
        model: 'alpha-ocr-1',
        document: { type: 'document_url', document_url: 'https://example.com/contract.pdf' },
        pages: [0, 1],
      },
    ],
  })

function annotation(description: string) {
  return z.looseObject({ type: z.string() }).nullish().describe(description)
}

export const OCR = defineEndpoints({
  ocr: {
    route: 'POST /v1/ocr',
    tag: 'Text',
    surface: 'responses',
    sells: 'ocr',
    after: 'moderations',
    title: 'Read documents (OCR)',
    description:
      'Reads the text of a PDF, a scan or a picture, page by page, as Markdown. Priced by the page. An extension of the contract.',
    returns: '`pages`: the `markdown` of each, with its `index` and `images`; `usage_info`: how many were read.',
    body: schemaOf(ocrBody),
    answer: having('pages model usage_info', {
      pages: list(
        having('index markdown', {
          index: integer,
          markdown: string,
          images: list(free),
          dimensions: nullable(loose({})),
        }),
      ),
      model: string,
      document_annotation: nullable(string),
      usage_info: loose({ pages_processed: integer, doc_size_bytes: nullable(integer) }),
    }),
  },
})
