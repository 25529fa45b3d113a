import type { PaidSpec } from '../../../pipeline/read.ts'
import { byModel } from '../../../pipeline/readers.ts'
import { SOCKETS } from '../endpoints.ts'
import { type RealtimeLink, readRealtimeRequest, type TranscriptLink } from './response.ts'

/** `link`: the way of a response to the vendor of its session. Absent: the session itself. */
export const realtimeEndpoint = (link?: RealtimeLink | TranscriptLink): PaidSpec => ({
  ...SOCKETS.realtime,
  sells: 'realtime',
  read: byModel('realtime', (json, uid, model) => readRealtimeRequest(json, uid, model, link)),
})
