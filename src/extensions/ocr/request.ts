// Documents that are read page by page, in Mistral's format. The vendor is told which pages to read, so that it cannot
// bill for more than is held: the caller's, those that the PDF has, or as many as the model reads of one document.
import type { Model } from '../../catalog/document.ts'
import { edited, isObject, type Json, type JsonText, objectOf, withMembers } from '../../kernel/json.ts'
import { readCount } from '../../meter/usage.ts'
import { readBody, wrong } from '../../protocols/check.ts'
import { type Answer, garbled, type PaidRequest } from '../../protocols/protocol.ts'
import { forwarded } from '../../protocols/text/forwarded.ts'
import { readWhole, renamed } from '../../protocols/text/relay.ts'
import { membersOf } from '../../protocols/text/request-members.ts'
import { ocrBody, PAGES_MAX } from './endpoint.ts'
import { countPdfPages } from './pdf-pages.ts'

const MEMBERS = membersOf({ forwarded: [...Object.keys(ocrBody.shape), 'id'], limits: [] })

export function readOcrRequest(given: JsonText, uid: string, model?: Pick<Model, 'limits'>): PaidRequest {
  if (isObject(given.value.document) && 'file_id' in given.value.document)
    throw wrong('document.file_id', 'is not offered: send the file as a data URI in "document_url".')
  const { document, pages, ...rest } = readBody(ocrBody, given)
  const most = model?.limits.pagesMax ?? PAGES_MAX
  const told = pages === null || pages === undefined ? pagesOf(document, most) : listed(pages)
  const { length: pagesMost } = told ?? { length: most }
  if (pagesMost > most) throw wrong('pages', `may name at most ${most} pages for this model.`)
  const json = told ? withMembers(given, { pages: JSON.stringify(told) }) : edited(given, { remove: ['pages'] })
  const isAnnotated = isObject(rest.bbox_annotation_format) || isObject(rest.document_annotation_format)
  const answer = (body: Buffer): Answer => {
    const whole = readWhole(body, 'latin1')
    if (!Array.isArray(whole.value.pages)) throw garbled('the answer has no pages')
    const read = readCount(objectOf(whole.value.usage_info).pages_processed) ?? whole.value.pages.length
    return { body: renamed(body, whole, uid), contentType: 'application/json', usage: { page: read } }
  }
  return {
    // It bills the pages once it reads them.
    ...forwarded('mistral-ocr', '/ocr', json, { product: uid, members: MEMBERS, answer, drains: 'call' }),
    price: { annotations: isAnnotated ? 'on' : 'off' },
    worst: { page: pagesMost },
  }
}

const firstPages = (count: number) => Array.from({ length: count }, (_, index) => index)

/**
 * Of a document whose length is not known. What vendors do with pages beyond the end is not published, so none are
 * named where the hold covers all that a vendor reads by itself.
 */
const anyPages = (most: number) => (most < PAGES_MAX ? firstPages(most) : undefined)

const DATA_URI = /^data:[^,]{0,200};base64,/

function pagesOf(document: Json, most: number): readonly number[] | undefined {
  if ('image_url' in document) return [0]
  const address = String(document.document_url)
  const head = DATA_URI.exec(address)?.[0]
  if (head === undefined) return anyPages(most)
  if (/^data:image\//.test(head)) return [0]
  const counted = countPdfPages(Buffer.from(address.slice(head.length), 'base64'))
  if (counted === undefined) return anyPages(most)
  if (counted > most)
    throw wrong('document', `has ${counted} pages, and this model reads ${most}: name some in "pages".`)
  return firstPages(Math.max(1, counted))
}

/** Each page once, in the order of the caller. */
function listed(pages: string | readonly number[]): readonly number[] {
  if (typeof pages !== 'string') return [...new Set(pages)]
  const all = new Set<number>()
  for (const part of pages.split(',')) {
    const [, first, last = first] = /^\s{0,9}(\d{1,6})(?:\s{0,9}-\s{0,9}(\d{1,6}))?\s{0,9}$/.exec(part) ?? []
    if (first === undefined || Number(last) < Number(first))
      throw wrong('pages', 'must be pages and ranges of them, such as "0-4,7".')
    for (let page = Number(first); page <= Number(last) && all.size <= PAGES_MAX; page++) all.add(page)
  }
  return [...all]
}
