// Makes pictures, slow ones on a thread of their own: the sandbox lives in the gateway's process, and must not hold it up.
import { Worker } from 'node:worker_threads'
import { type PictureOrder, paint } from './picture.ts'

/** On two shared cores a JPEG of 1024 by 1024 takes about 100 ms; the other formats take 40 ms even at 3840 by 2160. */
const SLOW_PIXELS = 200_000

export class Painter {
  #thread: Worker | undefined
  #tickets = 0
  readonly #waiting = new Map<number, { resolve: (bytes: Buffer) => void; reject: (error: unknown) => void }>()

  paint(order: PictureOrder): Promise<Buffer> {
    if (order.format !== 'jpeg' || order.width * order.height < SLOW_PIXELS) return paint(order)
    const ticket = ++this.#tickets
    return new Promise((resolve, reject) => {
      this.#waiting.set(ticket, { resolve, reject })
      this.#open().postMessage({ ticket, order })
    })
  }

  async close(): Promise<void> {
    await this.#thread?.terminate()
  }

  #open(): Worker {
    if (this.#thread) return this.#thread
    const thread = new Worker(new URL('./paint-thread.ts', import.meta.url))
    // An idle painter does not keep the process alive.
    thread.unref()
    thread.on('message', ({ ticket, bytes }: { ticket: number; bytes: Uint8Array }) => {
      this.#waiting.get(ticket)?.resolve(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
      this.#waiting.delete(ticket)
    })
    const fail = (error: unknown) => {
      this.#thread = undefined
      for (const { reject } of this.#waiting.values()) reject(error)
      this.#waiting.clear()
    }
    thread.once('error', fail)
    thread.once('exit', () => fail(new Error('the painter has stopped')))
    this.#thread = thread
    return thread
  }
}
