// Mistral's OCR: simulated pages, the same for the same document. A document has as many pages as `[[pages=N]]` in its
// address says, else three.
import { isRecord, list, parseJson, record, string } from './json.ts'
import { misbehave, sendWhole } from './misbehave.ts'
import { invalid, missing } from './refusal.ts'
import type { Room } from './room.ts'
import { dice, hash } from './seed.ts'
import { readTriggers } from './trigger.ts'

const PATH = /^\/openai(\/v1)?\/ocr$/
const PAGES = 3
const LINES = [
  'The gate opens at dawn and closes at dusk.',
  'Carriages pay by the wheel, riders by the horse.',
  'The keeper writes down what was paid.',
] as const
const DIMENSIONS = { dpi: 200, height: 2339, width: 1654 }

const mistralError = (status: number, message: string) => ({
  object: 'error',
  message,
  type: status === 422 ? 'invalid_request_error' : 'error',
  param: null,
  code: String(status),
})

export const ocrRoom: Room = {
  name: 'ocr',
  match: (method, asked) => method === 'POST' && PATH.test(asked),
  async serve(_req, res, ctx) {
    const body = parseJson((await ctx.body()).toString('utf8'))
    if (!isRecord(body))
      return ctx.json(422, { detail: [{ type: 'json_invalid', loc: ['body'], msg: 'JSON decode error' }] })
    ctx.call.model = string(body.model)
    const { document_url, image_url } = record(body.document)
    const address = string(document_url) || string(image_url) || string(record(image_url).url)
    const triggers = readTriggers({
      texts: [decoded(address), string(body.model)],
      headers: ctx.call.headers,
      query: ctx.query,
      memory: ctx.memory,
    })
    if (await misbehave(res, ctx, triggers, mistralError)) return
    try {
      if (address === '') throw missing('document')
      const all = image_url === undefined ? (triggers.number('pages') ?? PAGES) : 1
      const asked = Array.isArray(body.pages) ? list(body.pages).filter((page) => typeof page === 'number') : undefined
      const read = Array.from({ length: all }, (_, index) => index).filter((index) => asked?.includes(index) ?? true)
      if (read.length === 0) throw invalid('The document has no such pages.', 'pages')
      const pages = read.map((index) => pageOf(address, index, body.include_image_base64 === true))
      const usage_info = { pages_processed: pages.length, doc_size_bytes: address.length }
      const document_annotation = isRecord(body.document_annotation_format) ? '{}' : null
      const reported = triggers.has('no-usage') ? {} : { usage_info }
      await sendWhole(res, ctx, triggers, { pages, model: body.model, document_annotation, ...reported })
    } catch (error) {
      ctx.refuse(error, mistralError)
    }
  },
}

/** Triggers stand in an address as they are or escaped. */
function decoded(address: string): string {
  try {
    return decodeURIComponent(address.slice(0, 2000))
  } catch {
    return address.slice(0, 2000)
  }
}

const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

function pageOf(address: string, index: number, withImages: boolean) {
  const id = `img-${index}.png`
  const corners = { top_left_x: 100, top_left_y: 200, bottom_right_x: 500, bottom_right_y: 600 }
  return {
    index,
    markdown: `# Page ${index + 1}\n\n${dice(hash(`${address} ${index}`)).pick(LINES)}\n\n![${id}](${id})`,
    images: [{ id, ...corners, image_base64: withImages ? PIXEL : null, image_annotation: null }],
    tables: [],
    hyperlinks: [],
    header: null,
    footer: null,
    dimensions: DIMENSIONS,
  }
}
