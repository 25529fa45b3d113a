// Tools that generate: text, images and videos.

import { mayCall, mayUse } from '../../../admission/api-key.ts'
import { findOwnJob, hasEnded } from '../../../api/jobs.ts'
import type { EndpointSpec, JsonSchema } from '../../../catalog/endpoint.ts'
import { PAID } from '../../../catalog/generation.ts'
import type { Catalog } from '../../../catalog/store.ts'
import type { JobEngine } from '../../../jobs/engine.ts'
import { type JobRow, viewJob } from '../../../jobs/job.ts'
import { invalid } from '../../../kernel/fault.ts'
import type { KindName } from '../../../meter/kind.ts'
import { isPaid, type PaidSpec } from '../../../pipeline/read.ts'
import { callEndpoint, type PaidDeps } from './paid-call.ts'
import {
  type Arguments,
  firstSentence,
  markdownOf,
  objectSchema,
  requiredText,
  type Tool,
  type ToolAnswer,
  type ToolCall,
  textArgument,
} from './tool.ts'

interface MediaDeps extends PaidDeps {
  readonly jobs: Pick<JobEngine, 'jobs' | 'events' | 'results'>
}

const WAIT_SECONDS_MAX = 300
const WAIT_SECONDS = 120
const IMAGE_TYPE: Readonly<Record<string, string>> = { png: 'image/png', jpeg: 'image/jpeg', webp: 'image/webp' }

export function mediaTools(deps: MediaDeps): Tool[] {
  return [askModel(deps), ...readDocument(deps), generateImage(deps), createVideo(deps), ...videoJobs(deps)]
}

function sold(spec: EndpointSpec, kind: KindName): PaidSpec {
  return { ...spec, sells: kind }
}

/** True if the key may use the endpoint and at least one model of its kind. */
const sells =
  (spec: PaidSpec): Tool['offered'] =>
  (principal, { document }: Catalog) =>
    mayCall(principal, spec) &&
    Object.entries(document.models).some(
      ([uid, { type, enabled }]) => type === spec.sells && enabled && mayUse(principal, uid),
    )

/** The body's members that an agent needs; the endpoint itself accepts more. */
function members(body: JsonSchema | undefined, names: readonly string[]): Record<string, JsonSchema> {
  const properties = body?.properties as Record<string, JsonSchema> // Every body of the table is an object.
  const short = ({ description, ...rest }: JsonSchema) =>
    typeof description === 'string' ? { ...rest, description: firstSentence(description) } : rest
  return Object.fromEntries(names.map((name) => [name, short(properties[name] ?? {})]))
}

const link = (uri: string, name: string, mimeType: string) => ({ type: 'resource_link' as const, uri, name, mimeType })

const askEndpoint = (by: { spec: PaidSpec; tool: string }, body: Arguments, call: ToolCall, deps: MediaDeps) =>
  callEndpoint(by, { body: Buffer.from(JSON.stringify(body)) }, call, deps)

function askModel(deps: MediaDeps): Tool {
  const spec = sold(PAID.chat, 'text')
  const asBody = ({ prompt, system, ...rest }: Arguments): Arguments => ({
    ...rest,
    messages: [
      ...(system === undefined ? [] : [{ role: 'system', content: textArgument({ system }, 'system') }]),
      { role: 'user', content: prompt },
    ],
  })
  const tool: Tool = {
    name: 'ask_model',
    group: 'text',
    title: 'Ask a model',
    description:
      'Asks a text model one question and returns its answer: for a second opinion, a summary or a translation by another model. Each model has its price per token: list_models. Example: {"model":"alpha-5.4","prompt":"Name three uses of toll data.","max_tokens":300}.',
    input: objectSchema(
      {
        model: { type: 'string', description: 'From list_models with type text.' },
        prompt: { type: 'string' },
        system: { type: 'string', description: 'Instructions before the prompt.' },
        ...members(spec.body, ['max_tokens', 'temperature']),
      },
      ['model', 'prompt'],
    ),
    output: objectSchema({ text: { type: 'string' }, model: { type: 'string' } }, ['text']),
    readOnly: true,
    openWorld: true,
    endpoint: spec.id,
    asBody,
    offered: sells(spec),
    async run(call) {
      requiredText(call.args, 'prompt')
      const { value, ...paid } = await askEndpoint({ spec, tool: tool.name }, asBody(call.args), call, deps)
      // An answer in the chat format, already parsed by the protocol.
      const { model, usage, choices } = value as ChatAnswer
      const [choice] = choices ?? []
      const text = choice?.message?.content ?? ''
      return { structured: { text, model, finishReason: choice?.finish_reason ?? null, usage }, text, ...paid }
    },
  }
  return tool
}

interface ChatAnswer {
  readonly model: string
  readonly usage?: unknown
  readonly choices?: readonly {
    readonly message?: { readonly content?: string | null }
    readonly finish_reason?: string
  }[]
}

interface OcrAnswer {
  readonly pages: readonly { readonly markdown: string }[]
}

/** None where no extension reads documents. */
function readDocument(deps: MediaDeps): Tool[] {
  const spec = deps.catalog.current.added.filter(isPaid).find(({ sells }) => sells === 'ocr')
  if (!spec) return []
  const asBody = ({ url, ...rest }: Arguments): Arguments => ({
    ...rest,
    document: { type: 'document_url', document_url: url },
  })
  const tool: Tool = {
    name: 'read_document',
    group: 'text',
    title: spec.title,
    description: `${spec.description} Name the pages where you know them: as many are held for. Example: {"model":"alpha-ocr-1","url":"https://example.com/contract.pdf","pages":"0-2"}.`,
    input: objectSchema(
      {
        ...members(spec.body, ['model', 'pages', 'table_format']),
        url: { type: 'string', description: 'The address of a PDF or a picture, or a data URI.' },
      },
      ['model', 'url'],
    ),
    output: objectSchema({ pages: { type: 'array' } }, ['pages']),
    readOnly: true,
    openWorld: true,
    endpoint: spec.id,
    asBody,
    offered: sells(spec),
    async run(call) {
      requiredText(call.args, 'url')
      const { value, ...paid } = await askEndpoint({ spec, tool: tool.name }, asBody(call.args), call, deps)
      const { pages } = value as OcrAnswer // The protocol has seen that there are pages.
      return { structured: value, text: pages.map(({ markdown }) => markdown).join('\n\n'), ...paid }
    },
  }
  return [tool]
}

function generateImage(deps: MediaDeps): Tool {
  const spec = sold(PAID.images, 'image')
  const tool: Tool = {
    name: 'generate_image',
    group: 'media',
    title: spec.title,
    description: `${spec.description} Reference images are addresses, such as the links of earlier results. Returns an address that is good for days. The price depends on model, resolution and quality: quote tells. Example: {"model":"alpha-image-2","prompt":"A toll gate at dawn, watercolor","quality":"low"}.`,
    input: objectSchema(
      {
        ...members(spec.body, ['model', 'prompt', 'size', 'quality', 'resolution', 'image_urls', 'output_format']),
        size: { type: 'string', default: 'auto', description: 'A ratio such as 16:9, or pixels such as 1536x1024.' },
      },
      ['model', 'prompt'],
    ),
    output: objectSchema({ data: { type: 'array' } }, ['data']),
    readOnly: false,
    openWorld: true,
    endpoint: spec.id,
    offered: sells(spec),
    async run(call) {
      const { value, ...paid } = await askEndpoint({ spec, tool: tool.name }, call.args, call, deps)
      const { data = [] } = value as { readonly data?: readonly { readonly url: string }[] } // The relay writes this form.
      const mimeType = IMAGE_TYPE[String(call.args.output_format)] ?? 'image/png'
      const content = data.map(({ url }, index) => link(url, `image ${index + 1}`, mimeType))
      return { structured: value, text: data.map(({ url }) => url).join('\n'), content, ...paid }
    },
  }
  return tool
}

function createVideo(deps: MediaDeps): Tool {
  const spec = sold(PAID.video, 'video')
  const tool: Tool = {
    name: 'create_video',
    group: 'media',
    title: spec.title,
    description: `${spec.description} Returns a job id at once; then call wait_for_video. It is paid for when the video is there; quote tells the price. Example: {"model":"videogen-2.0","prompt":"A barrier opens at dawn","duration":5}.`,
    input: objectSchema(
      members(spec.body, [
        'model',
        'prompt',
        'first_frame',
        'last_frame',
        'image_urls',
        'video_urls',
        'audio_urls',
        'ratio',
        'duration',
        'resolution',
        'seed',
        'generate_audio',
      ]),
      ['model'],
    ),
    output: objectSchema({ jobId: { type: 'string' }, status: { type: 'string' } }, ['jobId']),
    readOnly: false,
    openWorld: true,
    endpoint: spec.id,
    offered: sells(spec),
    async run(call) {
      const { value, ...paid } = await askEndpoint({ spec, tool: tool.name }, call.args, call, deps)
      const { data } = value as { readonly data: { readonly jobId: string } } // The endpoint answers with the job's row.
      return { structured: data, text: `Job ${data.jobId} has begun. Call wait_for_video with this job_id.`, ...paid }
    },
  }
  return tool
}

const jobInput = { job_id: { type: 'string', description: 'From create_video.' } } as const

function videoJobs({ jobs, path: { world } }: MediaDeps): Tool[] {
  const shared = {
    group: 'media',
    output: objectSchema({ id: { type: 'string' }, status: { type: 'string' } }, ['id', 'status']),
    readOnly: true,
    openWorld: false,
    offered: sells(sold(PAID.video, 'video')),
  } as const
  const find = ({ principal, args }: ToolCall) => findOwnJob(jobs, principal, requiredText(args, 'job_id'))
  const answer = (job: JobRow): ToolAnswer => {
    const view = viewJob(job, jobs.results)
    const uris = view.outputResult?.flatMap(({ url }) => url) ?? []
    const content = uris.map((uri) => link(uri, `video of job ${job.id}`, 'video/mp4'))
    const { inputParams: _, ...told } = view
    return { structured: view, text: markdownOf(told), content }
  }
  return [
    {
      ...shared,
      name: 'get_video',
      title: 'A video job',
      description: 'Status and result of a video job, at once. Free.',
      input: objectSchema(jobInput, ['job_id']),
      run: async (call) => answer(await find(call)),
    },
    {
      ...shared,
      name: 'wait_for_video',
      title: 'Wait for a video',
      description:
        'Waits until a video job has ended, with notices of progress, and returns its status and result. When the time is over it returns the status so far: call it again with the same job_id. Free.',
      input: objectSchema(
        {
          ...jobInput,
          timeout_seconds: { type: 'integer', minimum: 1, maximum: WAIT_SECONDS_MAX, default: WAIT_SECONDS },
        },
        ['job_id'],
      ),
      async run(call) {
        const seconds = secondsOf(call.args.timeout_seconds)
        const job = await find(call)
        const seen = hasEnded(job) ? job : await waitFor(job, call, (done) => world.after(seconds * 1000, done))
        return answer(seen)
      },
    },
  ]

  /**
   * Resolves with the job once it has ended, or with its last known state on timeout or when the client disconnects.
   */
  function waitFor(job: JobRow, call: ToolCall, after: (done: () => void) => () => void): Promise<JobRow> {
    return new Promise((resolve) => {
      let last = job
      let steps = 0
      const tell = () => call.progress(++steps, STEPS, `The job is ${last.status}.`)
      const end = () => {
        stop()
        cancel()
        call.signal.removeEventListener('abort', end)
        resolve(last)
      }
      const stop = jobs.events.listen(job, (row) => {
        last = row
        tell()
        if (hasEnded(row)) end()
      })
      const cancel = after(end)
      call.signal.addEventListener('abort', end)
      tell()
      if (call.signal.aborted) end()
    })
  }
}

/** PENDING, CONNECT, PROCESSING and the final state. */
const STEPS = 4

function secondsOf(given: unknown): number {
  if (given === undefined || given === null) return WAIT_SECONDS
  if (typeof given === 'number' && Number.isInteger(given) && given >= 1 && given <= WAIT_SECONDS_MAX) return given
  throw invalid(`"timeout_seconds" must be a whole number from 1 to ${WAIT_SECONDS_MAX}.`, 'timeout_seconds')
}
