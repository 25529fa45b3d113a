// Examples with the clients for TypeScript and Python: pictures, videos and data. The key is TOLLGATE_KEY in the environment.
import { type DataSubject, namedArguments, python, type Tables, typescript } from './snippet-words.ts'

type Origin = Pick<Tables, 'origin'>

const typescriptHead = ({ origin }: Origin) => [
  "import { Tollgate } from 'tollgate-client'",
  '',
  `const client = new Tollgate({ baseUrl: '${origin}' })`,
]
const pythonHead = ({ origin }: Origin) => [
  'from tollgate_client import Tollgate',
  '',
  `client = Tollgate(base_url="${origin}")`,
]

const RESULTS = { image: 'image.png', video: 'video.mp4' }

export function typescriptMedia(kind: 'image' | 'video', body: string, stream: boolean, at: Origin): string {
  const shown = body.replace(/\n {2}stream: (?:true|false),?/, '').replace(/,(\n\})$/, '$1')
  const lines = stream
    ? [`for await (const event of client.images.stream(${shown})) console.log(event)`]
    : kind === 'image'
      ? [
          `const { data, cost } = await client.images.generate(${shown}).save('${RESULTS.image}')`,
          'console.log(data[0]?.url, cost)',
        ]
      : [
          `const video = await client.videos.create(${shown})`,
          'await video.wait({ onProgress: (job) => console.log(job.status) })',
          `await video.save('${RESULTS.video}')`,
        ]
  return [...typescriptHead(at), ...lines].join('\n')
}

export function pythonMedia(kind: 'image' | 'video', { stream, ...body }: Record<string, unknown>, at: Origin): string {
  const given = namedArguments(body)
  const lines =
    stream === true
      ? ['for event in client.images.stream(', ...given, '):', '    print(event)']
      : kind === 'image'
        ? [
            'image = client.images.generate(',
            ...given,
            `).save("${RESULTS.image}")`,
            'print(image.data[0].url, image.cost)',
          ]
        : [
            'video = client.videos.create(',
            ...given,
            ')',
            'video.wait(on_progress=lambda job: print(job.status))',
            `video.save("${RESULTS.video}")`,
          ]
  return [...pythonHead(at), ...lines].join('\n')
}

/** Forms hold text; the clients take numbers, lists and truth. */
function valueOfParam(param: DataSubject['params'][number], value: string): unknown {
  switch (param.kind) {
    case 'integer':
      return Number(value)
    case 'boolean':
      return value === 'true'
    case 'list':
      return value.split(',').map((item) => item.trim())
    case 'json-array':
      return value
    default:
      return value
  }
}

function partsOf(endpoint: DataSubject, values: Record<string, string>, { calls }: Tables) {
  const call = calls[endpoint.id]
  const given = endpoint.params.filter(({ name }) => (values[name] ?? '') !== '')
  const first = given.find(({ name }) => name === call?.first)
  const rest = given
    .filter((param) => param !== first)
    .map((param): [string, unknown] => [param.name, valueOfParam(param, values[param.name] ?? '')])
  return { call, first: first && (values[first.name] ?? ''), rest: Object.fromEntries(rest) }
}

export function typescriptData(endpoint: DataSubject, values: Record<string, string>, at: Tables): string {
  const { call, first, rest } = partsOf(endpoint, values, at)
  const parts = [
    ...(first === undefined ? [] : [JSON.stringify(first)]),
    ...(Object.keys(rest).length > 0 ? [typescript(rest)] : []),
  ]
  const line = `const answer = await client.${call?.typescript}(${parts.join(', ')})`
  return [...typescriptHead(at), line, 'console.log(answer, answer.cost)'].join('\n')
}

export function pythonData(endpoint: DataSubject, values: Record<string, string>, at: Tables): string {
  const { call, first, rest } = partsOf(endpoint, values, at)
  const named = Object.fromEntries(Object.entries(rest).map(([name, value]) => [call?.names[name] ?? name, value]))
  const lines = [
    `answer = client.${call?.python}(`,
    ...(first === undefined ? [] : [`    ${python(first)},`]),
    ...namedArguments(named),
    ')',
    'print(answer, answer.cost)',
  ]
  return [...pythonHead(at), ...lines].join('\n')
}
