// The connections to one vendor, each for one call at a time. The most recently used one is taken first, so that few connections stay busy and the
// idle ones time out. undici's own pool instead searches its connections one by one, and emits an event for each that becomes free.
import type { buildConnector, Client as UndiciClient } from 'undici'
import { Client } from './internals.ts'

export interface ConnectionSettings extends UndiciClient.Options {
  readonly connect: buildConnector.connector
}

/** Beyond this many free clients, the oldest is dropped if its connection has ended. */
const FREE_KEPT = 64

export class Connections {
  readonly #origin: string
  readonly #settings: ConnectionSettings
  readonly #all = new Set<Client>()
  readonly #free: Client[] = []

  constructor(origin: string, settings: ConnectionSettings) {
    this.#origin = origin
    this.#settings = settings
  }

  take(): Client {
    return this.#free.pop() ?? this.#open()
  }

  give(client: Client): void {
    this.#free.push(client)
    if (this.#free.length > FREE_KEPT) this.#forgetOldest()
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map((client) => client.destroy()))
  }

  #open(): Client {
    const client = new Client(this.#origin, this.#settings)
    this.#all.add(client)
    return client
  }

  #forgetOldest(): void {
    const [oldest] = this.#free
    if (!oldest || oldest.stats.connected) return
    this.#free.shift()
    this.#all.delete(oldest)
    oldest.destroy().catch(() => undefined)
  }
}
