// Calls of every kind against one or more gateways, and a record of what each caller was told.
import { parseCredits } from '../../src/kernel/credits.ts'

export type Kind = 'chat' | 'stream' | 'data' | 'leave' | 'fail'

export interface Told {
  readonly kind: Kind
  readonly url: string
  readonly sentMs: number
  readonly ms: number
  /** 0: no answer, or one that was cut. */
  readonly status: number
  readonly requestId: string | undefined
  /** In micro-credits; set when the answer was complete. */
  readonly charge: bigint | undefined
  readonly text: string
}

export interface Traffic {
  readonly told: Told[]
  readonly running: number
  /** Complete answers that named their charge. */
  acknowledged(): Told[]
  stop(): Promise<void>
}

export interface TrafficOptions {
  readonly urls: () => readonly string[]
  readonly key: string
  readonly kinds: readonly Kind[]
  /** So many calls at once, each followed by the next. */
  readonly atOnce?: number
  /** So many calls a second, whether the earlier ones have ended or not. */
  readonly perSecond?: number
  readonly model?: string
}

export function startTraffic(options: TrafficOptions): Traffic {
  const told: Told[] = []
  const running = new Set<Promise<void>>()
  let stopped = false
  let number = 0

  function begin(): Promise<void> {
    const index = number++
    const urls = options.urls()
    const kind = options.kinds[index % options.kinds.length]!
    const call = ask(urls[index % urls.length]!, kind, options).then((entry) => void told.push(entry))
    running.add(call)
    return call.finally(() => running.delete(call))
  }

  async function loop(): Promise<void> {
    while (!stopped) await begin()
  }
  const loops = Array.from({ length: options.atOnce ?? 0 }, loop)
  let timer: NodeJS.Timeout | undefined
  if (options.perSecond) {
    const startedMs = performance.now()
    timer = setInterval(() => {
      const due = ((performance.now() - startedMs) / 1000) * options.perSecond!
      while (number < due && !stopped) void begin()
    }, 10)
  }
  return {
    told,
    get running() {
      return running.size
    },
    acknowledged: () => told.filter(({ charge }) => charge !== undefined),
    async stop() {
      stopped = true
      clearInterval(timer)
      await Promise.all(loops)
      await Promise.all(running)
    },
  }
}

const PATIENCE_MS = 60_000
/** Of a vendor of its own: its breaker opens, and no other call is refused for it. */
const FAILING_MODEL = 'epsilon-k3'

async function ask(url: string, kind: Kind, { key, model = 'alpha-5.4' }: TrafficOptions): Promise<Told> {
  const sentMs = performance.now()
  const leaving = new AbortController()
  let status = 0
  let requestId: string | undefined
  let charge: bigint | undefined
  let text = ''
  try {
    const answer = await fetch(
      url + (kind === 'data' ? '/v1/siteanalytics/websites/visits?keys=example.com' : '/v1/chat-completions'),
      {
        method: kind === 'data' ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        signal: AbortSignal.any([leaving.signal, AbortSignal.timeout(PATIENCE_MS)]),
        ...(kind === 'data'
          ? {}
          : {
              body: JSON.stringify({
                model: kind === 'fail' ? FAILING_MODEL : model,
                messages: [{ role: 'user', content: promptOf(kind) }],
                stream: kind === 'stream' || kind === 'leave',
              }),
            }),
      },
    )
    requestId = answer.headers.get('x-request-id') ?? undefined
    if (kind === 'leave' && answer.ok) {
      await answer.body?.getReader().read()
      leaving.abort()
    } else text = await answer.text()
    status = answer.status
    charge = chargeOf(answer, text)
  } catch (error) {
    if (!leaving.signal.aborted) status = 0
    text ||= String((error as { cause?: unknown }).cause ?? error)
  }
  return {
    kind,
    url,
    sentMs,
    ms: performance.now() - sentMs,
    status,
    requestId,
    charge,
    text: status === 200 ? '' : text,
  }
}

function promptOf(kind: Kind): string {
  if (kind === 'fail') return 'please fail [[500]]'
  return kind === 'leave' ? 'a long story [[slow=20]]' : 'a few words'
}

function chargeOf(answer: Response, text: string): bigint | undefined {
  if (!answer.ok) return undefined
  const said = answer.headers.get('x-tollgate-charge') ?? /^: tollgate charge=(\S+)/m.exec(text)?.[1]
  if (said === undefined || said === null) return undefined
  if (answer.headers.get('content-type')?.includes('event-stream') && !text.trimEnd().endsWith('[DONE]'))
    return undefined
  return parseCredits(said) ?? undefined
}

/** What went wrong, counted. */
export function countBy(told: readonly Told[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { kind, status } of told) {
    const name = `${kind} ${status === 0 ? 'cut' : status}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}
