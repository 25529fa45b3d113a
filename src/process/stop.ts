// Tells a process to stop: at a signal, or when its launcher has exited. Repeated signals do no harm: Ctrl-C reaches
// every process of a terminal, and npm and the launcher forward it to processes that already have it.
import { closeSync, openSync } from 'node:fs'

export interface Stop {
  /** Resolves with the reason. */
  readonly asked: Promise<string>
  /** Aborted at the same moment. */
  readonly signal: AbortSignal
}

/** With `keepsHangup`, SIGHUP has another meaning and stops the process only if its terminal was closed. */
export function watchForStop({ keepsHangup = false } = {}): Stop {
  const asked = Promise.withResolvers<string>()
  const abort = new AbortController()
  const stop = (why: string) => {
    asked.resolve(why)
    abort.abort(new Error(`stopped: ${why}`))
  }
  const hadTerminal = hasTerminal()
  // The listeners stay to the end: a signal without a listener kills the process at once.
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
