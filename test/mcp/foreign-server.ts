// A foreign MCP server on a bare socket, in either era of the protocol, whose tools do what a test tells them: answer,
// lie, wait, or never end.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { listen } from '../started.ts'

export interface ForeignTool {
  name: string
  title?: string
  description?: string
  inputSchema?: object
  outputSchema?: object
  annotations?: object
}

interface Asked {
  readonly args: any
  readonly id: unknown
  readonly res: ServerResponse
  readonly headers: IncomingMessage['headers']
  readonly meta: Record<string, unknown> | undefined
}

type Act = (asked: Asked) => unknown

export interface ForeignServer {
  readonly url: string
  tools: ForeignTool[]
  /** By the tool's name: the result, or nothing where the act answers itself. */
  readonly acts: Map<string, Act>
  /** Every request, by its method. */
  readonly seen: { method: string; name?: string; session?: string | undefined; key?: string | undefined }[]
  /** Calls whose connection the client closed before the answer. */
  readonly left: string[]
  /** What is asked for instead of what would be answered. */
  refuse: ((method: string) => number | undefined) | undefined
  /** Wants a token, and says of itself where there are any. */
  protects: { isGood(token: string): Promise<boolean>; description: unknown } | undefined
  /** Takes requests and never answers. */
  mute: boolean
  /** Pages of the listing; undefined: all on one. */
  page: ((cursor: string | undefined) => { tools: ForeignTool[]; nextCursor?: string }) | undefined
  close(): Promise<void>
}

export const text = (said: string) => ({ content: [{ type: 'text', text: said }] })

export async function startForeignServer(era: 'modern' | 'legacy', tools: ForeignTool[] = []): Promise<ForeignServer> {
  let sessions = 0
  const server = await listen(async (req, res) => {
    if (made.protects && req.url?.startsWith('/.well-known/oauth-protected-resource'))
      return void res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(made.protects.description))
    if (req.method !== 'POST') return void res.writeHead(405).end()
    if (made.protects && !(await made.protects.isGood((req.headers.authorization ?? '').replace('Bearer ', '')))) {
      const where = `http://${req.headers.host}/.well-known/oauth-protected-resource/mcp`
      return void res.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${where}"` }).end()
    }
    const message: any = await json(req)
    const session = req.headers['mcp-session-id'] as string | undefined
    made.seen.push({ method: message.method, name: message.params?.name, session, key: req.headers.authorization })
    const status = made.refuse?.(message.method)
    if (status !== undefined) return void res.writeHead(status).end('{"error":{"message":"no"}}')
    if (made.mute) return
    if (message.id === undefined) return void res.writeHead(202).end()
    const answer = (result: object, headers = {}) => {
      const whole = { jsonrpc: '2.0', id: message.id, result: { resultType: 'complete', ...result } }
      res.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(whole))
    }
    const unknown = () =>
      res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'no such method' } }))
    if (message.method === 'server/discover' && era === 'modern')
      return answer({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, ttlMs: 0, cacheScope: 'private' })
    if (message.method === 'initialize' && era === 'legacy')
      return answer(
        { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'foreign', version: '1' } },
        { 'mcp-session-id': `s${++sessions}` },
      )
    if (message.method === 'tools/list') {
      const page = made.page?.(message.params?.cursor) ?? { tools: made.tools }
      const listed = page.tools.map((tool) => ({ inputSchema: { type: 'object' }, ...tool }))
      return answer({ ...page, tools: listed, ttlMs: 0, cacheScope: 'private' })
    }
    const act = message.method === 'tools/call' ? made.acts.get(message.params.name) : undefined
    if (!act) return unknown()
    res.on('close', () => {
      if (!res.writableEnded) made.left.push(message.params.name)
    })
    const { _meta: meta } = message.params
    const result = await act({ meta, args: message.params.arguments, id: message.id, res, headers: req.headers })
    if (result !== undefined) answer(result as object)
  })
  const made: ForeignServer = {
    url: `${server.url}/mcp`,
    close: server.close,
    tools,
    acts: new Map(),
    seen: [],
    left: [],
    refuse: undefined,
    protects: undefined,
    mute: false,
    page: undefined,
  }
  return made
}
