import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { assert, test } from '../../test/kit.ts'
import { createLog } from './log.ts'

const LOG = join(import.meta.dirname, 'log.ts')

test('a process whose log nobody reads any more still ends', async () => {
  const program = `
    import { createLog } from ${JSON.stringify(LOG)}
    const log = createLog({ level: 'info' })
    process.once('message', () => {
      log.info({}, 'last words')
      process.exit(3)
    })
    process.send('ready')`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  await new Promise((resolve) => child.once('message', resolve))
  child.stderr!.destroy()
  await new Promise((resolve) => child.stderr!.once('close', resolve))
  child.send('go')
  const late = setTimeout(() => child.kill('SIGKILL'), 120_000)
  const code = await new Promise((resolve) => child.once('exit', resolve))
  clearTimeout(late)
  assert.equal(code, 3)
})

test('what was logged just before the end is written', async () => {
  const program = `
    import { createLog } from ${JSON.stringify(LOG)}
    createLog({ level: 'info' }).info({ one: 1 }, 'last words')
    process.exit(0)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let text = ''
  child.stderr.on('data', (piece: Buffer) => {
    text += piece
  })
  await new Promise((resolve) => child.once('close', resolve))
  assert.equal((JSON.parse(text) as { msg: string }).msg, 'last words')
})

test('a line holds its fields between level, time and message; an error is told with its stack, and nothing makes logging fail', () => {
  const lines: string[] = []
  const log = createLog({ level: 'info', stream: { write: (line: string) => lines.push(line) } })
  log.debug({ hidden: true }, 'too quiet')
  log.info({ requestId: 'req_1', left: undefined, ms: 3 }, 'a "call"')
  log.warn({}, 'nothing else')
  log.error({ error: new TypeError('no') }, 'fault')
  const round: { self?: object } = {}
  round.self = round
  log.error({ round, amount: 5n }, 'odd')
  assert.match(lines[0]!, /^\{"level":30,"time":\d+,"requestId":"req_1","ms":3,"msg":"a \\"call\\""\}\n$/)
  assert.match(lines[1]!, /^\{"level":40,"time":\d+,"msg":"nothing else"\}\n$/)
  const { error } = JSON.parse(lines[2]!) as { error: { name: string; message: string; stack: string } }
  assert.deepEqual([error.name, error.message], ['TypeError', 'no'])
  assert.match(error.stack, /log\.test\.ts/)
  const odd = JSON.parse(lines[3]!) as { amount: string; msg: string }
  assert.deepEqual([odd.amount, odd.msg], ['5', 'odd'])
  assert.equal(lines.length, 4)
})
