// The connections to one vendor, each for one call at a time. The one that was used last is taken first, so that as few as can be are kept busy
// and the others end by themselves. undici's own pool asks its connections one after the other, and tells of each that is free by an event.
import type { buildConnector, Client as UndiciClient } from 'undici'
import { Client } from './internals.ts'

export interface ConnectionSettings extends UndiciClient.Options {
  readonly connect: buildConnector.connector
}

/** Beyond so many, those that have ended are forgotten. */
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
