// Active probes: vendors with `probe` in the catalog get a free request at an interval, such as for their list of
// models. One process makes each probe, and all processes apply the result to the vendor's breaker. Without probes, and
// after their old results were deleted, nothing runs, not even a database query.
import { type CatalogDocument, credentialsOf } from '../../catalog/document.ts'
import { SHORT_MS, sql } from '../../database/database.ts'
import type { Target } from '../../protocols/protocol.ts'
import type { CheckDeps, Prober } from '../../routing/checks.ts'
import { targetOf } from '../../routing/route.ts'
import type { ProbeState } from '../../routing/views.ts'
import type { HttpCall, UpstreamReply } from '../../upstream/call.ts'
import { probeCall } from './free-check.ts'
import { Failure, hear, refusalOf, testedRoute } from './vendor-test.ts'

const DEADLINES = { connectMs: 3_000, firstByteMs: 8_000, idleMs: 3_000, totalMs: 10_000 }
/** Longer than a probe can take. */
const LEASE_SECONDS = 20
/** The end of a longer list is not read. */
const BODY_BYTES_MAX = 65_536
/** After a failure, and while calls fail. */
const AGAIN_SECONDS = 5
/** Where there was no list. */
const UNSUPPORTED_SECONDS = 3_600
const RUNNING_MAX = 8
const MESSAGE_CHARS_MAX = 300

interface ProbeRow {
  readonly vendor: string
  readonly every_seconds: number
  readonly state: ProbeState
  readonly message: string
  readonly failures: number
  readonly latency_ms: number | null
  readonly since: Date
  readonly probed_at: Date | null
  readonly age_ms: number | null
  readonly free: boolean
  readonly due: boolean
}

interface Known extends ProbeRow {
  /** On the clock for durations, or a little earlier. */
  readonly beganMs: number
}

interface ProbeResult {
  readonly state: ProbeState
  /** It counts against the vendor. */
  readonly counts: boolean
  readonly message: string
  readonly latencyMs: number
}

interface Probe {
  readonly target: Target
  readonly call: HttpCall
  /** Of several. */
  readonly credential?: string
}

export function createProber(deps: CheckDeps): Prober {
  const { database, catalog, vendors, world, log, meter } = deps
  let known = new Map<string, Known>()
  const running = new Map<string, Promise<unknown>>()
  const stopping = new AbortController()
  /** When a credential or an address last changed: results of probes that started before may be outdated. */
  let changedMs = Number.NEGATIVE_INFINITY
  let possible: Map<string, number> | undefined
  /** The database may have results for vendors that are no longer probed. */
  let hasStale = true

  const changed = () => {
    changedMs = world.elapsedMs()
    possible = undefined
    hasStale = true
  }
  deps.changes.watch('credentials', changed)
  deps.changes.watch('catalog', changed)

  /** Those that are to be probed and can be, with their intervals. */
  const wanted = () => {
    possible ??= new Map(
      [...probedVendors(catalog.current.document)].filter(([vendor]) => typeof probeOf(vendor, deps) !== 'string'),
    )
    return possible
  }

  /** `askedMs`: when the database was asked for the row. */
  function learn(row: ProbeRow, everySeconds: number, askedMs: number): void {
    const { vendor, failures, message, since, state, age_ms: ageMs } = row
    const before = known.get(vendor)
    const endedMs = askedMs - (ageMs ?? Number.POSITIVE_INFINITY)
    const isNews = before?.probed_at?.getTime() !== row.probed_at?.getTime()
    const estimatedMs = endedMs - (row.latency_ms ?? 0)
    // The process that made the probe knows it best.
    const beganMs = isNews || !before ? estimatedMs : Math.min(before.beganMs, estimatedMs)
    known.set(vendor, { ...row, beganMs })
    if (ageMs === null) return
    // If no process probes any more, old results expire.
    const untilMs = endedMs + (2 * everySeconds + 3 * LEASE_SECONDS) * 1000
    vendors.probed(vendor, { failures, message, sinceMs: since.getTime(), untilMs })
    if (!isNews) return
    if (state === 'answering') vendors.probeEnded(vendor, true, beganMs)
    else if (failures > 0) vendors.probeEnded(vendor, false, endedMs)
  }

  async function read(intervals: ReadonlyMap<string, number>): Promise<void> {
    const askedMs = world.elapsedMs()
    const changedBeforeMs = changedMs
    const rows = await database.query<ProbeRow>(READ)
    const before = known
    known = new Map([...before].filter(([vendor]) => rows.some((row) => row.vendor === vendor)))
    for (const vendor of before.keys()) if (!intervals.has(vendor)) vendors.probed(vendor, undefined)
    for (const row of rows) {
      const everySeconds = intervals.get(row.vendor)
      if (everySeconds !== undefined) learn(row, everySeconds, askedMs)
      else known.delete(row.vendor)
    }
    // Another process may have the credentials that this one lacks.
    const probed = probedVendors(catalog.current.document)
    const isStale = rows.some(({ vendor }) => !probed.has(vendor))
    // A change since then asks for another look.
    if (changedMs === changedBeforeMs) hasStale = isStale
    if (isStale) await database.query(FORGET, [[...probed.keys()]])
  }

  /** While calls fail, probes run more often to detect the recovery. */
  const isUrgent = (vendor: string) => {
    const { state } = known.get(vendor) ?? {}
    return (state === 'answering' || state === 'failing') && vendors.awaitsProbe(vendor)
  }

  async function probe(vendor: string, everySeconds: number, isSoon: boolean): Promise<void> {
    const claim = [vendor, everySeconds, LEASE_SECONDS, isSoon]
    const [claimed] = await database.query<{ version: number; listed_url: string | null }>(CLAIM, claim)
    if (!claimed) return
    // With the credential as it is now: a change from here on is one after the probe began.
    const asked = probeOf(vendor, deps)
    if (typeof asked === 'string') return
    const { url } = asked.call
    const found = await askFor(asked, claimed.listed_url === url, stopping.signal, deps)
    // The lease ends soon, and another process asks again.
    if (stopping.signal.aborted) return
    meter(vendor, found.state)
    const { state, counts, message, latencyMs } = found
    const next = nextSeconds(found, everySeconds) * (0.9 + (0.2 * (world.bytes(1)[0] ?? 0)) / 255)
    const values = [vendor, claimed.version, next, state, message, latencyMs, counts, url]
    const askedMs = world.elapsedMs()
    const [row] = await database.query<ProbeRow>(ENDED, values)
    if (!row) return
    if (row.since.getTime() === row.probed_at?.getTime())
      log[state === 'answering' ? 'info' : 'warn'](
        { vendor, state, message },
        'the probe state of a vendor has changed',
      )
    learn(row, everySeconds, askedMs)
  }

  return {
    async tick() {
      const intervals = wanted()
      if (intervals.size === 0 && known.size === 0 && !hasStale) return
      await read(intervals)
      for (const [vendor, everySeconds] of intervals) {
        const row = known.get(vendor)
        const soon = isUrgent(vendor) || (row !== undefined && row.state !== 'answering' && row.beganMs < changedMs)
        const isDue = !row || (row.free && (row.due || soon || row.every_seconds !== everySeconds))
        if (!isDue || stopping.signal.aborted || running.has(vendor) || running.size >= RUNNING_MAX) continue
        const probing = probe(vendor, everySeconds, soon)
          .catch((error: unknown) => log.warn({ error, vendor }, 'a probe could not be made or stored'))
          .finally(() => running.delete(vendor))
        running.set(vendor, probing)
      }
    },
    view(vendor) {
      const everySeconds = probedVendors(catalog.current.document).get(vendor)
      if (everySeconds === undefined) return null
      const none = { since: null, at: null, latencyMs: null, failures: 0 }
      const asked = probeOf(vendor, deps)
      if (typeof asked === 'string') return { everySeconds, state: 'unsupported', message: asked, ...none }
      const row = known.get(vendor)
      if (!row?.probed_at) return { everySeconds, state: 'waiting', message: 'It has not been probed yet.', ...none }
      const { state, message, failures, since, probed_at: at, latency_ms: latencyMs } = row
      return { everySeconds, state, message, failures, latencyMs, since: since.toISOString(), at: at.toISOString() }
    },
    found: () => [...known.values()],
    stop: () => stopping.abort(),
    idle: () => Promise.all(running.values()),
  }
}

function probedVendors({ vendors, routing }: CatalogDocument): Map<string, number> {
  return new Map(
    Object.entries(vendors).flatMap(([name, vendor]) => {
      const { everySeconds } = (vendor.probe ?? routing?.probe) || {}
      return everySeconds === undefined ? [] : [[name, everySeconds] as const]
    }),
  )
}

/** The request and who makes it, or why there is none. */
function probeOf(name: string, { catalog, sources, vendors }: CheckDeps): Probe | string {
  const { document } = catalog.current
  const vendor = document.vendors[name]
  const tested = testedRoute(name, document)
  if (!vendor || !tested) return 'No model or endpoint has a route to it.'
  const all = credentialsOf(vendor).map((one) => one.name)
  const there = all.filter((one) => targetAt(one).secret !== undefined)
  if (all.length > 0 && there.length === 0) return 'Its credential has no value.'
  const credential = there.find((one) => vendors.credentials.health(name, one).why === null) ?? there[0]
  const target = targetAt(credential)
  const call = probeCall(target)
  if (!call) return 'The gateway knows no free request for this vendor.'
  return { target, call, ...(credential !== undefined && all.length > 1 ? { credential } : {}) }

  function targetAt(one: string | undefined): Target {
    return targetOf(tested!.route, { ...vendor!, credential: one }, tested!.uid, sources) // Both are there.
  }
}

/** The answer's body as far as it is read. A longer one is broken off, which is not the vendor's fault. */
async function beginning(reply: UpstreamReply): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  const piped = reply.pipe((piece) => {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > BODY_BYTES_MAX) reply.abort()
    return undefined
  })
  await piped.catch((error: unknown) => {
    if (bytes <= BODY_BYTES_MAX) throw error
  })
  return Buffer.concat(pieces)
}

const ABSENT: ReadonlySet<number> = new Set([404, 405, 410, 501])
/** Those below 500 that are faults even of a vendor that has no list. */
const FAULTS: ReadonlySet<number> = new Set([402, 408])

/** `hasList`: it has answered at this address before. One that never has may have no list, and still take calls. */
async function askFor(
  { target, call, credential }: Probe,
  hasList: boolean,
  signal: AbortSignal,
  deps: CheckDeps,
): Promise<ProbeResult> {
  const how = { deadlines: DEADLINES, read: beginning, signal }
  const heard = await hear(call, target, { ...deps, isForeign: false }, how)
  const told = (state: ProbeState, counts: boolean, message: string): ProbeResult => ({
    state,
    counts,
    message: message.slice(0, MESSAGE_CHARS_MAX).toWellFormed(),
    latencyMs: heard instanceof Failure ? heard.found.latencyMs : heard.latencyMs,
  })
  // Another of several credentials may be right.
  const rejected = (counts: boolean, message: string) =>
    told('rejected', counts && credential === undefined, credential ? `${credential}: ${message}` : message)
  if (heard instanceof Failure) {
    const { message } = heard.found
    return heard.isLoginRefused ? rejected(true, message) : told('failing', true, message)
  }
  const unlisted = (message: string) => told(hasList ? 'failing' : 'unsupported', hasList, message)
  const { status, body } = heard
  if (status >= 200 && status < 300)
    return /^\s*[[{]/.test(body.toString('latin1', 0, 100))
      ? told('answering', false, 'It answers.')
      : unlisted('It answers, but not with JSON. Is the address that of an API?')
  const said = refusalOf(heard)
  if (status === 429) return told('answering', false, said)
  // A credential that may make calls may still not be allowed to list models.
  if (status === 401 || status === 403) return rejected(status === 401, said)
  if (ABSENT.has(status)) return told('unsupported', false, `It has no list of models at this address (${status}).`)
  return status < 500 && !FAULTS.has(status) ? unlisted(said) : told('failing', true, said)
}

function nextSeconds({ state }: ProbeResult, everySeconds: number): number {
  if (state === 'failing') return Math.min(everySeconds, AGAIN_SECONDS)
  return state === 'unsupported' ? UNSUPPORTED_SECONDS : everySeconds
}

const FREE = '(lease_until is null or lease_until < now())'
const COLUMNS = `vendor, every_seconds, state, message, failures, latency_ms, since, probed_at,
  (extract(epoch from now() - probed_at) * 1000)::float8 as age_ms, ${FREE} as free, next_at <= now() as due`
const READ = sql('vendor_probe_read', SHORT_MS)`select ${COLUMNS} from vendor_probe order by vendor limit 10000`
// Not at once: a process that has not seen the new catalog yet would probe again.
const FORGET = sql('vendor_probe_forget')`
  delete from vendor_probe where not vendor = any($1) and greatest(probed_at, lease_until) < now() - interval '1 minute'`
const CLAIM = sql('vendor_probe_claim')`
  insert into vendor_probe as p (vendor, every_seconds, lease_until) values ($1, $2, now() + make_interval(secs => $3))
   on conflict (vendor) do update set every_seconds = excluded.every_seconds, lease_until = excluded.lease_until, version = p.version + 1
   where (p.lease_until is null or p.lease_until < now()) and (p.next_at <= now() or p.every_seconds <> excluded.every_seconds
     or ($4 and p.probed_at < now() - make_interval(secs => ${AGAIN_SECONDS})))
   returning version, listed_url`
const ENDED = sql('vendor_probe_ended')`
  update vendor_probe set lease_until = null, next_at = now() + make_interval(secs => $3), probed_at = now(), state = $4, message = $5,
     listed_url = case when $4 = 'answering' then $8 else listed_url end, latency_ms = $6,
     failures = case when $7 then failures + 1 else 0 end, since = case when state = $4 then since else now() end
   where vendor = $1 and version = $2 returning ${COLUMNS}`
