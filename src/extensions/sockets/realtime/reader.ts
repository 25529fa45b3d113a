import type { Incoming, ReadDeps } from '../../../pipeline/read.ts'
import { byModel } from '../../../pipeline/readers.ts'
import { type RealtimeLink, readRealtimeRequest, type TranscriptLink } from './response.ts'

/** `link`: the way of a response to the vendor of its session. Absent: the session itself. */
export function readerOf(deps: ReadDeps, link?: RealtimeLink | TranscriptLink): NonNullable<Incoming['reader']> {
  const read = byModel('realtime', (json, uid, model) => readRealtimeRequest(json, uid, model, link))
  return (incoming) => read(incoming, deps)
}
