// Gateways in processes of their own (job-process.ts), to be killed. Those that a test file leaves alive are killed
// after it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, assert, OPERATOR_TOKEN } from './gateway.ts'
import type { JobProcessOptions } from './job-process.ts'

export interface Killable {
  readonly url: string
  /** The jobs that it has ended. */
  readonly ended: Set<string>
  /** It hangs, with all that it holds, until it is resumed or killed. */
  pause(): void
  resume(): void
  kill(): Promise<void>
  /** Of its operator API: the data of an answer. */
  ask<T>(method: string, path: string, body?: object): Promise<T>
}

/** Starts them. */
export function killable(): (options: JobProcessOptions) => Promise<Killable> {
  const all: Killable['kill'][] = []
  after(() => Promise.all(all.map((kill) => kill())))
  return async (options) => {
    const file = join(import.meta.dirname, 'job-process.ts')
    const child = spawn(process.execPath, [file, JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(child, 'exit')
    const kill = async () => {
      child.kill('SIGKILL')
      await exited
    }
    all.push(kill)
    const ended = new Set<string>()
    const ready = Promise.withResolvers<string>()
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [word, what = ''] = line.split(' ')
      if (word === 'ended') ended.add(what)
      if (word === 'listening') ready.resolve(what)
    })
    void exited.then(([code]) => ready.reject(new Error(`the gateway ended with ${code}`)))
    const [pause, resume] = [() => void child.kill('SIGSTOP'), () => void child.kill('SIGCONT')]
    const url = await ready.promise
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' }
    const ask = async (method: string, path: string, body?: object) => {
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const answer = await fetch(`${url}/admin/v1${path}`, { method, headers, ...sent })
      const text = await answer.text()
      assert.equal(answer.status, 200, `${method} ${path}: ${text}`)
      return JSON.parse(text).data
    }
    return { url, ended, pause, resume, kill, ask }
  }
}
