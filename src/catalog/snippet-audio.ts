// Examples for sound, which is sent as a file and comes as one.
import { namedArguments, type Tables, typescript } from './snippet-words.ts'

type Body = Record<string, unknown>
type Origin = Pick<Tables, 'origin'>

const FILE = 'recording.wav'
const SOUND = 'speech.mp3'

export function audioSnippet(language: 'curl' | 'python' | 'typescript', path: string, body: Body, at: Origin): string {
  const isHeard = path.endsWith('/transcriptions')
  if (language === 'curl') return isHeard ? curlForm(path, body, at) : curlSound(path, body, at)
  return language === 'python' ? python(isHeard, body, at) : typescriptOf(isHeard, body, at)
}

function curlForm(path: string, body: Body, { origin }: Origin): string {
  const fields = Object.entries(body).map(([name, value]) => `  -F ${name}=${String(value)}`)
  const head = [`curl ${origin}${path} \\`, '  -H "Authorization: Bearer $TOLLGATE_KEY" \\', `  -F file=@${FILE} \\`]
  return [...head, fields.join(' \\\n')].join('\n')
}

function curlSound(path: string, body: Body, { origin }: Origin): string {
  return [
    `curl ${origin}${path} -o ${SOUND} \\`,
    '  -H "Authorization: Bearer $TOLLGATE_KEY" \\',
    '  -H "Content-Type: application/json" \\',
    `  -d '${JSON.stringify(body, null, 2).replaceAll("'", "'\\''")}'`,
  ].join('\n')
}

function python(isHeard: boolean, body: Body, { origin }: Origin): string {
  return [
    'import os',
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url="${origin}/v1", api_key=os.environ["TOLLGATE_KEY"])`,
    `answer = client.audio.${isHeard ? 'transcriptions' : 'speech'}.create(`,
    ...(isHeard ? [`    file=open("${FILE}", "rb"),`] : []),
    ...namedArguments(body),
    ')',
    isHeard ? 'print(answer.text)' : `answer.write_to_file("${SOUND}")`,
  ].join('\n')
}

function typescriptOf(isHeard: boolean, body: Body, { origin }: Origin): string {
  const client = `const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: process.env.TOLLGATE_KEY })`
  if (isHeard)
    return [
      "import { createReadStream } from 'node:fs'",
      "import OpenAI from 'openai'",
      '',
      client,
      `const file = createReadStream('${FILE}')`,
      `const answer = await client.audio.transcriptions.create({ file, ...${typescript(body)} })`,
      'console.log(answer.text)',
    ].join('\n')
  return [
    "import { writeFile } from 'node:fs/promises'",
    "import OpenAI from 'openai'",
    '',
    client,
    `const answer = await client.audio.speech.create(${typescript(body)})`,
    `await writeFile('${SOUND}', Buffer.from(await answer.arrayBuffer()))`,
  ].join('\n')
}
