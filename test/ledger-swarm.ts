// Several real processes that call the ledger at once, and what became of their calls in all.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

export interface Orders {
  /** Each is called by itself. */
  readonly of: ReadonlyArray<{ readonly url: string; readonly account: string }>
  readonly want: string
  /** What each costs in the end; absent: all that was held for it. */
  readonly charge?: string
  readonly labels?: Readonly<Record<string, string>>
  /** So many at each process, of which none ends; in waves. */
  readonly calls?: number
  readonly waves?: number
  /** Or one after the other, each settled, until it is enough; each caller then tries a few times more. */
  readonly isEnough?: (counts: readonly Counts[]) => boolean
}

export interface Counts {
  held: number
  refused: number
  failed: number
}

/** For each account that is called. */
export async function runSwarm(processes: number, { isEnough, ...orders }: Orders): Promise<Counts[]> {
  const text = JSON.stringify({ ...orders, steadily: isEnough !== undefined } satisfies Task)
  const children = Array.from({ length: processes }, (_, i) =>
    fork(join(import.meta.dirname, 'ledger-process.ts'), [`child-${i}`, text], { stdio: 'inherit' }),
  )
  const latest: Array<readonly Counts[]> = children.map(() => [])
  const sums = () =>
    orders.of.map((_, at) =>
      latest.reduce<Counts>(
        (sum, counts) => ({
          held: sum.held + (counts[at]?.held ?? 0),
          refused: sum.refused + (counts[at]?.refused ?? 0),
          failed: sum.failed + (counts[at]?.failed ?? 0),
        }),
        { held: 0, refused: 0, failed: 0 },
      ),
    )
  try {
    await Promise.all(children.map((child) => said(child, 'ready')))
    const answers = children.map((child) => said(child, 'done'))
    for (const [at, child] of children.entries())
      child.on('message', ({ counts = [] }: Said) => {
        latest[at] = counts
        if (isEnough?.(sums())) for (const one of children) if (one.connected) one.send('enough', () => undefined)
      })
    for (const child of children) child.send('go')
    await Promise.all(answers)
    const counted = sums()
    const ended = children.map((child) => said(child, 'ended'))
    for (const child of children) child.send('end')
    await Promise.all(ended)
    return counted
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}

/** One process that calls without an end, until it is killed in the middle of it. */
export async function runKilled(
  { isEnough, ...orders }: Orders & Required<Pick<Orders, 'isEnough'>>,
  name = 'killed',
): Promise<void> {
  const text = JSON.stringify({ ...orders, steadily: true } satisfies Task)
  const child = fork(join(import.meta.dirname, 'ledger-process.ts'), [name, text], { stdio: 'inherit' })
  const ended = once(child, 'exit')
  await said(child, 'ready')
  child.on('message', ({ counts = [] }: Said) => {
    if (isEnough(counts)) child.kill('SIGKILL')
  })
  child.send('go')
  await ended
}

/** What a process is told. */
export interface Task extends Omit<Orders, 'isEnough'> {
  readonly steadily: boolean
}

interface Said {
  readonly say: string
  readonly counts?: readonly Counts[]
}

function said(child: ChildProcess, word: string): Promise<Said> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: Said) => {
      if (message.say === word) resolve(message)
    })
    child.once('exit', (code) => reject(new Error(`a process ended with ${code}`)))
  })
}
