// Documents that are read page by page (OCR).
import { defineExtension } from '../../extension.ts'
import { asked, paidEndpoints } from '../../pipeline/paid-endpoint.ts'
import { OCR } from './endpoint.ts'
import { readOcrRequest } from './request.ts'

/** A picture of one pixel. */
const DOT =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

export const ocr = defineExtension({
  name: 'ocr',
  entries: paidEndpoints(OCR, { ocr: asked('ocr', readOcrRequest, { document: { image_url: DOT } }) }),
})
