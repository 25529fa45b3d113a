// A room is one simulated vendor. The server finds the room of a request and hands it over with this context.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { World } from '../src/kernel/world.ts'
import type { CallLog, SeenCall } from './log.ts'
import type { Memory } from './memory.ts'

export interface Room {
  readonly name: string
  /** `path` has no query and no doubled slashes: `/openai/chat/completions`. */
  match(method: string, path: string): boolean
  serve(req: IncomingMessage, res: ServerResponse, ctx: RoomContext): Promise<void> | void
}

export interface RoomContext {
  readonly world: World
  /** How many times faster than a real vendor: 1 is lifelike, Infinity does not wait. */
  readonly speed: number
  /** The sandbox's own address, without a trailing slash. */
  readonly baseUrl: string
  readonly path: string
  readonly query: URLSearchParams
  readonly log: CallLog
  /** This request's entry in the log. */
  readonly call: SeenCall
  readonly memory: Memory
  /** The whole request body. Rooms that take large uploads read `req` themselves. */
  body(): Promise<Buffer>
  /** Answers with JSON; says that it is simulated. */
  json(status: number, value: unknown, headers?: Record<string, string>): void
  /** Waits; true while the client is still there. */
  pause(ms: number): Promise<boolean>
  /** Resolves when the client has gone, so that a stalled answer can be held open and let go. */
  gone(): Promise<void>
  readonly isGone: boolean
  /** Breaks the connection, as a vendor's crash would. */
  cut(): void
}

export const SIMULATED_HEADER = { 'x-simulated': 'tollgate-sandbox' } as const
