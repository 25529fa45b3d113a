// Vendors of videos that refuse, take orders without saying so, or long after they were asked; that fail, get stuck,
// lose tasks and their files, and sometimes deliver. Each knows its own tasks only.
import type { HttpCall } from '../../src/upstream/call.ts'
import type { VendorPlan } from './faulty-vendor.ts'
import type { VirtualWorld } from './virtual-world.ts'

const ENDINGS = ['succeeded', 'succeeded', 'succeeded', 'failed', 'expired', 'stuck', 'lost', 'gone'] as const

export interface SimulatedTask {
  readonly id: string
  readonly host: string
  /** The job that it was made for. */
  readonly token: string
  readonly seed: number | undefined
  readonly model: string
  readonly bornMs: number
  readonly startMs: number
  readonly endMs: number
  /** `lost`: the vendor forgets it. `gone`: it succeeds, and its file cannot be fetched. */
  readonly ending: (typeof ENDINGS)[number]
  /** Undefined: it does not tell. */
  readonly seconds: number | undefined
  readonly repeatsToken: boolean
  cancelled: boolean
}

export class TaskVendor {
  readonly #world: VirtualWorld
  readonly #faults: number
  readonly tasks: SimulatedTask[] = []
  calm = false

  constructor(world: VirtualWorld, faults: number) {
    this.#world = world
    this.#faults = faults
  }

  static serves(call: HttpCall): boolean {
    return call.url.includes('/contents/generations/tasks')
  }

  /** The token of the job that is being submitted, if the call is a submission. */
  static tokenOf(call: HttpCall): string | undefined {
    return call.method === 'POST' ? call.headers['x-client-token'] : undefined
  }

  answer(call: HttpCall): VendorPlan {
    const { chance } = this.#world
    if (call.method === 'POST') return this.#create(call)
    if (!this.calm && chance.is(this.#faults)) {
      if (chance.is(0.3)) return broken(chance.below(30_000))
      if (chance.is(0.5)) return reply(chance.pick([429, 500, 503]), {})
    }
    const plan = call.method === 'DELETE' ? this.#cancel(call) : this.#show(call)
    // What the vendor has done stays done, whether its answer arrives or not.
    return !this.calm && chance.is(this.#faults / 2) ? { ...plan, ending: 'cut', pieces: [] } : plan
  }

  #create(call: HttpCall): VendorPlan {
    const { chance } = this.#world
    const faulty = !this.calm && chance.is(this.#faults * 2)
    if (!faulty) return reply(200, { id: this.#make(call).id })
    switch (chance.below(6)) {
      case 0:
        return { headersMs: chance.below(500), status: 0, ending: 'cut' }
      case 1:
        return reply(chance.pick([401, 402, 429, 503]), {})
      case 2:
        return reply(400, { error: { code: 'InvalidParameter', message: 'No.' } })
      case 3:
        if (chance.is(0.5)) this.#make(call)
        return reply(500, {})
      case 4:
        this.#make(call)
        return broken(chance.is(0.5) ? 0 : 60_000)
      default:
        // The order dawdles on its way, and nobody waits for it any more.
        this.#world.after(chance.below(chance.is(0.2) ? 90_000 : 25_000), () => void this.#make(call))
        return broken(60_000)
    }
  }

  #make(call: HttpCall): SimulatedTask {
    const { chance } = this.#world
    const order = JSON.parse(String(call.body)) as { model: string; duration: number; seed?: number }
    const bornMs = this.#world.elapsedMs()
    const startMs = bornMs + chance.below(25_000)
    const task: SimulatedTask = {
      id: `task-${this.tasks.length}-${chance.below(1e6)}`,
      host: new URL(call.url).host,
      token: call.headers['x-client-token']!,
      seed: order.seed,
      model: order.model,
      bornMs,
      startMs,
      endMs: startMs + chance.below(45_000),
      ending: chance.is(this.#faults * 3) ? chance.pick(ENDINGS) : 'succeeded',
      seconds: chance.pick([order.duration, order.duration, order.duration - 1, 1e9, undefined]),
      repeatsToken: chance.is(0.7),
      cancelled: false,
    }
    this.tasks.push(task)
    this.#world.note(`task ${task.id} of ${task.token}: ${task.ending}`)
    return task
  }

  #cancel(call: HttpCall): VendorPlan {
    const task = this.#find(call)
    if (!task) return reply(404, {})
    if (this.#status(task) !== 'queued') return reply(409, {})
    task.cancelled = true
    return reply(200, {})
  }

  #show(call: HttpCall): VendorPlan {
    const url = new URL(call.url)
    const known = this.tasks.filter((task) => task.host === url.host && !this.#isLost(task))
    if (!url.pathname.endsWith('/tasks')) {
      const task = this.#find(call)
      return task && !this.#isLost(task) ? reply(200, this.#view(task)) : reply(404, {})
    }
    const asked = url.searchParams.getAll('filter.task_ids')
    const items = known.filter((task) => asked.length === 0 || asked.includes(task.id)).reverse()
    return reply(200, { items: items.map((task) => this.#view(task)) })
  }

  #find(call: HttpCall): SimulatedTask | undefined {
    const { host, pathname } = new URL(call.url)
    const id = decodeURIComponent(pathname.split('/').at(-1)!)
    return this.tasks.find((task) => task.host === host && task.id === id)
  }

  #isLost(task: SimulatedTask): boolean {
    return task.ending === 'lost' && this.#world.elapsedMs() >= task.endMs
  }

  #status(task: SimulatedTask): string {
    const nowMs = this.#world.elapsedMs()
    if (task.cancelled) return 'cancelled'
    if (nowMs < task.startMs) return 'queued'
    if (nowMs < task.endMs || task.ending === 'stuck') return 'running'
    return task.ending === 'gone' ? 'succeeded' : task.ending
  }

  #view(task: SimulatedTask): object {
    const status = this.#status(task)
    return {
      id: task.id,
      model: task.model,
      status,
      created_at: Math.floor((this.#world.nowMs() - this.#world.elapsedMs() + task.bornMs) / 1000),
      ...(task.repeatsToken ? { safety_identifier: task.token } : {}),
      ...(task.seed === undefined ? {} : { seed: task.seed }),
      ...(status === 'succeeded'
        ? { content: { video_url: `http://files.example/${task.ending}/${task.id}` }, duration: task.seconds }
        : {}),
      ...(status === 'failed' ? { error: { code: 'InternalServiceError', message: 'It failed.' } } : {}),
    }
  }
}

function reply(status: number, body: object): VendorPlan {
  return { headersMs: 20, status, pieces: [{ afterMs: 0, text: JSON.stringify(body) }], ending: 'clean' }
}

/** No answer: at once, or not in time. */
function broken(headersMs: number): VendorPlan {
  return { headersMs, status: 200, pieces: [], ending: 'cut' }
}
