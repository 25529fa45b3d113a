// Lines wait in memory for at most half a second: a write to the file for every few lines was a tenth of the cost of a call. When
// whoever reads them stops, more than a megabyte is dropped; when nobody is left to read, all of it. The log library's own
// buffer is not used, because at exit it goes on for ever trying to write where nobody reads.
import { write, writeSync } from 'node:fs'

const FLUSH_EVERY_MS = 500
const FLUSH_CHARS = 65_536
const WAITING_CHARS_MAX = 1_048_576
/** At exit a reader that is behind gets this long, in all. */
const LAST_TRIES_MAX = 50
const LAST_PAUSE_MS = 20

interface BufferedOutput {
  write(line: string): void
}

export function openBufferedOutput(fd: number): BufferedOutput {
  let waiting = ''
  let leaving: Buffer = Buffer.alloc(0)
  let writing = false
  let gone = false
  let timed = false

  function flush(): void {
    if (writing || gone || (leaving.length === 0 && waiting === '')) return
    if (leaving.length === 0) {
      leaving = Buffer.from(waiting)
      waiting = ''
    }
    writing = true
    write(fd, leaving, (error, bytes) => {
      writing = false
      // A reader that is only behind is tried again with the next flush.
      if (error) gone = error.code !== 'EAGAIN'
      else leaving = leaving.subarray(bytes)
      if (!error && (leaving.length > 0 || waiting.length >= FLUSH_CHARS)) flush()
    })
  }

  /** A process that logs nothing is not woken for it. */
  function flushLater(): void {
    if (timed) return
    timed = true
    setTimeout(() => {
      timed = false
      flush()
      // A reader that is behind is tried again.
      if (!gone && (leaving.length > 0 || waiting !== '')) flushLater()
    }, FLUSH_EVERY_MS).unref()
  }

  function flushAtExit(): void {
    // What is on its way is in the hands of a thread, whose work is waited for.
    let rest = writing ? Buffer.from(waiting) : Buffer.concat([leaving, Buffer.from(waiting)])
    const pause = new Int32Array(new SharedArrayBuffer(4))
    for (let tries = 0; rest.length > 0 && !gone && tries < LAST_TRIES_MAX; ) {
      try {
        rest = rest.subarray(writeSync(fd, rest))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
        tries++
        Atomics.wait(pause, 0, 0, LAST_PAUSE_MS)
      }
    }
  }

  process.once('exit', flushAtExit)
  return {
    write(line) {
      if (gone || waiting.length > WAITING_CHARS_MAX) return
      waiting += line
      flushLater()
      if (waiting.length >= FLUSH_CHARS) flush()
    },
  }
}
