// A vendor's whole JSON answer, read one character per byte: numbers and structure are right, positions are bytes, and
// nothing is decoded that only passes through.
import { Fault } from '../../kernel/fault.ts'
import { memberSpan } from '../../kernel/json.ts'
import { isObject, type Json } from '../check.ts'
import { vendorFault } from '../vendor-fault.ts'

interface Whole {
  /** One character per byte. */
  readonly bytes: string
  readonly value: Json
}

/**
 * Reads an answer that passes (one character per byte) or one that is put into other words (utf8). Throws what it says went
 * wrong, if it says so: some vendors report errors with status 200.
 */
export function readWhole(body: Buffer, encoding: 'latin1' | 'utf8' = 'latin1'): Whole {
  const bytes = body.toString(encoding)
  const value = parse(bytes)
  if (!isObject(value)) throw new Fault('upstream_garbled', { internal: { why: 'the answer is not an object' } })
  const error = value.error
  if (error !== undefined && error !== null && error !== '')
    throw vendorFault((JSON.parse(body.toString('utf8')) as Json).error)
  return { bytes, value }
}

function parse(bytes: string): unknown {
  try {
    return JSON.parse(bytes)
  } catch (cause) {
    throw new Fault('upstream_garbled', {
      internal: { why: 'the answer is not JSON' },
      cause,
    })
  }
}

/** The body with the public name of the model in place of the vendor's. */
export function renamed(body: Buffer, whole: Whole, uid: string): Buffer {
  if (whole.value.model === uid) return body
  const span = memberSpan(whole.bytes, 'model')
  if (!span) return body
  return Buffer.concat([body.subarray(0, span[0]), Buffer.from(`"${uid}"`), body.subarray(span[1])])
}
