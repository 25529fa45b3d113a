// A gateway that is killed in the middle of paid POSTs, with both clients waiting: each gets one result, and pays once.

import { dirname, join, resolve } from 'node:path'
import { Tollgate } from '../../clients/typescript/src/index.ts'
import { makeDataDirectory, openStore, startProcess } from '../chaos/gateway-process.ts'
import { assert, freePort, test, until } from '../kit.ts'
import { pythonWith, runProgram } from '../sdk/cache.ts'

const ROOT = resolve(import.meta.dirname, '..', '..')
const KEY = /tg_live_\w{38}/
/** The gateway is killed while the vendor thinks. */
const PROMPT = 'Think about it. [[wait=8000]]'
const PATIENCE_MS = 240_000
/** A restart takes a while on a busy machine, and longer than the clients have patience for unless they are told. */
const RETRIES_MAX = 30

const PYTHON = `
import sys
from tollgate_client import Tollgate
tries = []
from tollgate_client import Hooks
client = Tollgate(retries_max=int(sys.argv[2]), hooks=Hooks(on_retry=lambda *told: tries.append(str(told[4]))))
answer = client.chat.create(model="alpha-5.4", max_tokens=50, messages=[{"role": "user", "content": sys.argv[1]}])
print(len(answer.choices[0].message.content), len(tries))
`

/** The same before and after: clients know no other. */
async function askInPython(python: string, env: Record<string, string>): Promise<number> {
  const compiled = {
    PYTHONPATH: join(ROOT, 'clients', 'python', 'src'),
    PYTHONPYCACHEPREFIX: join(dirname(dirname(python)), 'pycache'),
  }
  const { code, out, err } = await runProgram(python, ['-c', PYTHON, PROMPT, String(RETRIES_MAX)], {
    env: { PATH: process.env.PATH, ...compiled, ...env },
    timeoutMs: PATIENCE_MS,
  })
  assert.equal(code, 0, err)
  const [length, tries] = out.trim().split(' ').map(Number)
  assert.ok((tries ?? 0) > 0, 'its call was not interrupted')
  return length ?? 0
}

test('a gateway that is killed in the middle of a paid POST charges once, and the client gets its one result', async (t) => {
  const data = await makeDataDirectory()
  const env = { TOLLGATE_DATA: data.path, PORT: String(await freePort()) }
  let gateway = await startProcess({ env })
  try {
    await until(() => gateway.output, KEY)
    const key = KEY.exec(gateway.output)?.[0] ?? ''
    const retries: string[] = []
    const client = new Tollgate({
      baseUrl: gateway.url,
      apiKey: key,
      retriesMax: RETRIES_MAX,
      hooks: { onRetry: ({ error }) => retries.push(error.message) },
    })
    const before = Number((await client.account()).balance)
    const python = await pythonWith(join(ROOT, 'test', 'sdk', 'python', 'tools.txt'), 10)
    if ('missing' in python) console.log(`The client for Python was not killed under: ${python.missing}`)
    const store = await openStore(data.path)
    const running = (calls: number) =>
      until(async () => {
        const [row] = await store.query<{ running: bigint }>({
          text: 'select count(*) as running from idempotency where status is null',
        })
        return Number(row?.running) === calls
      })
    const answers: Promise<number>[] = []
    if ('python' in python) {
      answers.push(askInPython(python.python, { TOLLGATE_URL: gateway.url, TOLLGATE_KEY: key }))
      await running(1)
    }
    answers.push(
      client.chat
        .create({ model: 'alpha-5.4', max_tokens: 50, messages: [{ role: 'user', content: PROMPT }] })
        .then(({ choices }) => choices[0]?.message.content?.length ?? 0),
    )
    await running(answers.length)
    await store.close()
    gateway.kill('SIGKILL')
    await gateway.exited
    gateway = await startProcess({ env })

    for (const length of await Promise.all(answers)) assert.ok(length > 0)
    t.diagnostic(`tried again after: ${[...new Set(retries)].join(' | ')}`)
    assert.ok(retries.length > 0)
    const now = await openStore(data.path)
    const charges = await now.query<{ charged: bigint }>({
      text: `select charged from usage where outcome = 'settled' and product = 'alpha-5.4' and charged > 0`,
    })
    const held = await now.query({ text: 'select 1 from hold' })
    await now.close()
    assert.equal(charges.length, answers.length)
    assert.deepEqual(held, [])
    const paid = charges.reduce((sum, { charged }) => sum + Number(charged), 0) / 1e6
    assert.ok(Math.abs(before - Number((await client.account()).balance) - paid) < 1e-6)
  } finally {
    gateway.kill('SIGTERM')
    await gateway.exited
    await data.remove()
  }
})
