// Videos are jobs: started, waited for by events, and picked up again by their id.
import { ConnectionError, JobFailedError, ServerError, TimeoutError } from './errors.ts'
import { asAddress, type Reference, save } from './files.ts'
import { type Job, type JobStatus, type JobsListParams, PATHS, type VideoRequest } from './generated.ts'
import { download } from './images.ts'
import { queryOf } from './query.ts'
import { readEvents } from './sse.ts'
import { type Answer, type Body, type CallOptions, pause, type Transport } from './transport.ts'

type Pictures = 'first_frame' | 'last_frame' | 'image_urls'

/** Pictures may be addresses, data URIs, paths of local files, blobs or bytes. */
export type VideoParams = Omit<VideoRequest, 'model' | Pictures> & {
  /** videogen-2.0 unless given. */
  model?: 'videogen-2.0' | 'videogen-2.5' | (string & {})
  first_frame?: Reference
  last_frame?: Reference
  image_urls?: readonly Reference[]
}

export interface WaitOptions extends CallOptions {
  /** Called with every change of the status. */
  onProgress?(job: Job): void
  /** Where events do not come through, the job is asked for this often; 5,000 unless given. */
  pollMs?: number
}

const ENDED: readonly JobStatus[] = ['COMPLETED', 'FAILED', 'CANCELLED']
const at = (id: string) => `${PATHS.jobs}/${encodeURIComponent(id)}`

/** A video on its way, or finished. */
export class Video {
  readonly id: string
  /** As it was when last heard of. */
  job: Job | undefined
  readonly #transport: Transport

  constructor(id: string, transport: Transport, job?: Job) {
    this.id = id
    this.job = job
    this.#transport = transport
  }

  get status(): JobStatus {
    return this.job?.status ?? 'PENDING'
  }

  /** Addresses of the result; empty while there is none. */
  get urls(): readonly string[] {
    return (this.job?.outputResult ?? []).flatMap(({ url }) => url)
  }

  async refresh(options?: CallOptions): Promise<Job> {
    this.job = await this.#transport.data<Job>({ method: 'GET', path: at(this.id) }, options)
    return this.job
  }

  /** Asks the vendor to stop; ConflictError where it has begun. */
  async cancel(options?: CallOptions): Promise<Job> {
    this.job = await this.#transport.data<Job>({ method: 'DELETE', path: at(this.id) }, options)
    return this.job
  }

  /** Until it is finished; JobFailedError if it fails. A day is enough for every job, and `deadlineMs` for less. */
  async wait(options: WaitOptions = {}): Promise<this> {
    const { onProgress, pollMs = 5_000, signal, deadlineMs = 86_400_000 } = options
    const untilMs = Date.now() + deadlineMs
    const seen = (job: Job) => {
      if (job.status !== this.job?.status) onProgress?.(job)
      this.job = job
    }
    while (!ENDED.includes(this.status)) {
      const leftMs = untilMs - Date.now()
      if (leftMs <= 0) throw new TimeoutError(`Job ${this.id} has not ended within ${deadlineMs} ms.`)
      const call = { timeoutMs: leftMs, deadlineMs: leftMs, ...(signal ? { signal } : {}) }
      try {
        const ask = { method: 'GET', path: `${at(this.id)}/events` } as const
        for await (const job of this.#transport.events(ask, call, jobs)) seen(job)
      } catch (error) {
        if (!(error instanceof ConnectionError || error instanceof ServerError)) throw error
      }
      if (ENDED.includes(this.status)) break
      // The events ended early: something between us and the gateway does not carry them.
      seen(await this.#transport.data<Job>({ method: 'GET', path: at(this.id) }, { ...options, deadlineMs: leftMs }))
      if (!ENDED.includes(this.status)) await pause(Math.min(pollMs, Math.max(1, untilMs - Date.now())), signal)
    }
    if (this.status !== 'COMPLETED')
      throw new JobFailedError(this.job?.error?.message ?? `The job was ${this.status.toLowerCase()}.`, this.id)
    return this
  }

  async bytes(): Promise<Uint8Array> {
    return download(this.#transport, this.urls[0] ?? '')
  }

  /** Writes the video into a file. */
  async save(path: string): Promise<void> {
    await save(path, await this.bytes())
  }
}

async function* jobs(body: Body): AsyncGenerator<Job> {
  for await (const { event, data } of readEvents(body)) if (event === 'status') yield JSON.parse(data) as Job
}

export function videosOf(transport: Transport) {
  return {
    /**
     * Starts a video. When this returns the job is durable; sent again with the same `idempotencyKey` it is the same
     * job.
     */
    async create(params: VideoParams, options?: CallOptions): Promise<Video> {
      const { first_frame: first, last_frame: last, image_urls: images, ...rest } = params
      const body = {
        model: 'videogen-2.0',
        ...rest,
        ...(first === undefined ? {} : { first_frame: await asAddress(first) }),
        ...(last === undefined ? {} : { last_frame: await asAddress(last) }),
        ...(images === undefined ? {} : { image_urls: await Promise.all(images.map(asAddress)) }),
      }
      const ask = { method: 'POST', path: PATHS.video, body, paid: true } as const
      const { jobId } = await transport.data<{ jobId: string }>(ask, options)
      return new Video(jobId, transport)
    },
    /** A video that was started earlier, perhaps by another program. */
    resume: (id: string) => new Video(id, transport),
  }
}

export function jobsOf(transport: Transport) {
  return {
    get: (id: string, options?: CallOptions) => transport.data<Job>({ method: 'GET', path: at(id) }, options),
    /** Newest first, page after page. */
    async *list(params: JobsListParams = {}, options?: CallOptions): AsyncGenerator<Job> {
      for (let before = params.before; ; ) {
        const query = queryOf({ ...params, ...(before === undefined ? {} : { before }) })
        const page: Answer<{ data: Job[]; hasMore: boolean; nextBefore?: string }> = await transport.json(
          { method: 'GET', path: PATHS.jobs, query },
          options,
        )
        yield* page.data
        if (!page.hasMore) return
        before = page.nextBefore
      }
    },
  }
}
