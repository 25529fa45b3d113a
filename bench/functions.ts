// How much code a steady call passes: `npm run bench -- functions [--stream] [--list] [--against ../before]`. V8 counts
// in the gateway's own process; a function is counted if it ran in nearly every one of the calls, so that timers and
// posting are left out.
import { parseArgs } from 'node:util'
import { openBed } from './bed.ts'
import { listCases } from './cases.ts'
import { freePort } from './process.ts'
import { startTollgate } from './tollgate.ts'

const WARM = 200
const COUNTED = 50
const PART = 0.9

const { values: args } = parseArgs({
  args: process.argv.slice(3),
  options: {
    stream: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    /** Another checkout. */
    against: { type: 'string' },
  },
})

interface Coverage {
  readonly result: ReadonlyArray<{
    readonly url: string
    readonly functions: ReadonlyArray<{ functionName: string; ranges: ReadonlyArray<{ count: number }> }>
  }>
}

/** A way to ask the inspector of a process. */
async function inspect(port: number) {
  const [page] = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as Array<{
    webSocketDebuggerUrl: string
  }>
  const socket = new WebSocket(page!.webSocketDebuggerUrl) // Each process has one.
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }))
  let last = 0
  return (method: string, params: object = {}) =>
    new Promise<Coverage>((resolve) => {
      const id = ++last
      const hear = ({ data }: MessageEvent) => {
        const answer = JSON.parse(String(data)) as { id?: number; result: Coverage }
        if (answer.id !== id) return
        socket.removeEventListener('message', hear)
        resolve(answer.result)
      }
      socket.addEventListener('message', hear)
      socket.send(JSON.stringify({ id, method, params }))
    })
}

const { store, options, close } = await openBed('functions')
const port = await freePort()
const tollgate = await startTollgate({
  ...options,
  store,
  nodeOptions: [`--inspect=127.0.0.1:${port}`],
  ...(args.against === undefined ? {} : { root: args.against }),
})
const { body } = listCases(true).find(({ id }) => id === (args.stream ? 'stream' : 'chat-1'))! // It is in the list.
const call = async () => {
  const answer = await fetch(`http://127.0.0.1:${tollgate.port}/v1/chat/completions`, {
    method: 'POST',
    body,
    headers: { ...tollgate.headers, 'content-type': 'application/json' },
  })
  await answer.arrayBuffer()
  if (answer.status !== 200) throw new Error(`The gateway answers ${answer.status}.`)
}
try {
  const ask = await inspect(port)
  for (let i = 0; i < WARM; i++) await call()
  await ask('Profiler.enable')
  await ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await call()
  await ask('Profiler.takePreciseCoverage')
  for (let i = 0; i < COUNTED; i++) await call()
  const { result } = await ask('Profiler.takePreciseCoverage')
  const files = new Map<string, string[]>()
  let times = 0
  for (const { url, functions } of result) {
    const [, file] = /\/src\/(.+\.ts)$/.exec(url) ?? []
    if (file === undefined) continue
    for (const { functionName, ranges } of functions) {
      const count = ranges[0]?.count ?? 0
      if (count < COUNTED * PART) continue
      times += count / COUNTED
      files.set(file, [...(files.get(file) ?? []), `${functionName || '(nameless)'} ${Math.round(count / COUNTED)}`])
    }
  }
  const all = [...files].sort(([one], [other]) => one.localeCompare(other))
  if (args.list) for (const [file, names] of all) console.log(`${file}: ${names.join(', ')}`)
  const functions = all.reduce((sum, [, names]) => sum + names.length, 0)
  console.log(`${functions} functions in ${files.size} files, ${times.toFixed(0)} calls of them`)
} finally {
  await tollgate.stop()
  await close()
}
