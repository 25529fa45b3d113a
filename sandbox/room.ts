// A room is one simulated vendor. The server finds the room of a request and hands it over with this context.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RoomContext } from './context.ts'

export type { RoomContext } from './context.ts'

export interface Room {
  readonly name: string
  /** `path` has no query and no doubled slashes: `/openai/chat/completions`. */
  match(method: string, path: string): boolean
  serve(req: IncomingMessage, res: ServerResponse, ctx: RoomContext): Promise<void> | void
}

export const SIMULATED_HEADER = { 'x-simulated': 'tollgate-sandbox' } as const
