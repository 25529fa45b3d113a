// When a process is to end: at a signal, or when whoever started it has gone. Once is enough, and more do no harm: Ctrl-C reaches
// every process of a terminal, and npm and the launcher pass it on to those who already have it.
import { closeSync, openSync } from 'node:fs'

export interface Stop {
  /** Resolves with what asked for it. */
  readonly asked: Promise<string>
  /** Aborted at that moment. */
  readonly signal: AbortSignal
}

/** With `keepsHangup`, SIGHUP has a meaning of its own and ends the process only when its terminal was closed. */
export function watchForStop({ keepsHangup = false } = {}): Stop {
  const asked = Promise.withResolvers<string>()
  const abort = new AbortController()
  const stop = (why: string) => {
    asked.resolve(why)
    abort.abort(new Error(`stopped: ${why}`))
  }
  const hadTerminal = hasTerminal()
  // These stay to the end: a signal that nobody listens for ends a process at once.
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  process.on('SIGHUP', () => {
    const isClosed = process.platform === 'win32' || (hadTerminal && !hasTerminal())
    if (!keepsHangup || isClosed) stop('SIGHUP')
  })
  if (process.connected === false) stop('its launcher has gone')
  process.once('disconnect', () => stop('its launcher has gone'))
  process.channel?.unref()
  return { asked: asked.promise, signal: abort.signal }
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
