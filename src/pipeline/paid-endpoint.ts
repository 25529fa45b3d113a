// The paid endpoints, each complete: its entry, and what answers there. Those of the core are a list here; extensions
// bring values of the same type.
import type { Model } from '../catalog/document.ts'
import type { EndpointSpec } from '../catalog/endpoint.ts'
import { PAID } from '../catalog/generation.ts'
import { Fault } from '../kernel/fault.ts'
import type { Json, JsonText } from '../kernel/json.ts'
import type { KindName } from '../meter/kind.ts'
import type { FormHeaders } from '../protocols/media/form.ts'
import {
  BODY_BYTES_MAX,
  checkImageContentType,
  readEditForm,
  readImageBody,
} from '../protocols/media/openai-images/body.ts'
import { readVideoBody } from '../protocols/media/video-task/request.ts'
import type { PaidRequest } from '../protocols/protocol.ts'
import type { ByteLease } from '../upstream/budget.ts'
import type { Incoming, PaidSpec, RequestBody } from './read.ts'
import { byModel, type Reader, readCreation, readData, readImage, readText, readVideo } from './readers.ts'
import type { ResponseSink } from './response-sink.ts'

/** What answers at a paid endpoint. */
export interface Serving {
  readonly read: Reader
  /** Of an entry with a large body: takes it as it arrives. */
  readonly take?: (body: ArrivingBody) => Promise<Taken>
  /** Of an entry whose requests may be several calls: makes them, and answers by `out` what they give. */
  readonly convert?: (json: JsonText, out: ResponseSink, call: PartCall) => Promise<void>
  /** Reads what the gateway itself asks of a model, for no caller. */
  readonly ask?: Ask
  /** The least that can be asked so, to test a vendor. Absent: even that is expensive. */
  readonly smallest?: Json
}

type Ask = (json: JsonText, uid: string, model?: Model) => PaidRequest

/** What an extension brings. */
export type PaidEndpoint = PaidSpec & Serving

/** A body that is read from the socket, within the budget of bytes. */
interface ArrivingBody extends FormHeaders {
  readonly pieces: AsyncIterable<Buffer>
  readonly lease: ByteLease
  /** The request has an idempotency key. */
  readonly isRepeatable: boolean
}

/** What of a request is its body, as far as the endpoint has one. */
export interface Taken extends RequestBody {
  /** What an idempotency key is bound to: the body, or a hash of it. Absent: the endpoint takes no such key. */
  readonly digest?: string | Buffer | undefined
}

/** Makes one of the calls of a request. `part`: which of several it is. */
type PartCall = (json: JsonText, out: ResponseSink, part?: number) => Promise<void>

/** Each entry with what answers there. */
export function paidEndpoints<Id extends string>(
  entries: Readonly<Record<Id, EndpointSpec>>,
  servings: Readonly<Record<NoInfer<Id>, Serving>>,
): readonly PaidEndpoint[] {
  return Object.entries<EndpointSpec>(entries).map(([id, { sells, ...spec }]) => {
    const serving = servings[id as Id] // It is a key of both.
    if (!sells || !spec.largeBody !== !serving.take || !spec.several !== !serving.convert)
      throw new Error(`The entry "${id}" does not go with what answers there.`)
    return { ...spec, sells, ...serving }
  })
}

/** Of models whose requests are JSON: their protocol checks the contents. */
export const asked = (kind: KindName, ask: Ask, smallest?: Json): Serving => ({
  read: byModel(kind, ask),
  ask,
  ...(smallest && { smallest }),
})

const TEXT: Serving = { read: readText }
const DATA: Serving = { read: readData }

const PAID_ENDPOINTS = paidEndpoints(PAID, {
  chat: TEXT,
  responses: TEXT,
  'responses/compact': TEXT,
  messages: TEXT,
  images: { read: readImage, take: takePictures },
  'images/edits': { read: readImage, take: takeEdit },
  video: { read: readVideo },
  'video/create': { read: readCreation, take: takeVideo },
})

const KNOWN: ReadonlyMap<string, Serving> = new Map(PAID_ENDPOINTS.map((one) => [one.id, one]))

/** The entry with what answers there. */
export const completed = (spec: PaidSpec): PaidSpec => (spec.read ? spec : { ...spec, ...servingOf(spec) })

function servingOf({ id, sells }: PaidSpec): Serving {
  const serving = sells === 'data' ? DATA : KNOWN.get(id)
  if (!serving) throw new Fault('internal', { internal: { why: 'nothing reads what this endpoint is asked', id } })
  return serving
}

export const readerOf = ({ spec }: Incoming): Reader => spec.read ?? servingOf(spec).read

async function takePictures({ pieces, lease, isRepeatable, ...headers }: ArrivingBody): Promise<Taken> {
  const { contentType, contentLength } = headers
  checkImageContentType(contentType)
  if ((contentLength ?? 0) > BODY_BYTES_MAX) throw new Fault('request_too_large')
  // The text is gone; what stays are the pictures and little else.
  const read = await readImageBody(pieces, { contentLength, digest: isRepeatable })
  return { json: read.json, pictures: { ...read, lease }, digest: read.digest }
}

/** A form with pictures. */
async function takeEdit({ pieces, lease, ...headers }: ArrivingBody): Promise<Taken> {
  const read = await readEditForm(pieces, headers)
  return { json: read.json, pictures: { ...read, lease }, digest: read.digest }
}

/** A form of a video, or the same as JSON. */
function takeVideo({ pieces, ...headers }: ArrivingBody): Promise<Taken> {
  return readVideoBody(pieces, headers)
}
