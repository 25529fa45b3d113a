import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'

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
  const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
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
