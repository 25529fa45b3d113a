// A vendor of the chat format that does what a test says: it answers, fails, or waits before its headers or its first
// token.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { listen } from './started.ts'

export interface ScriptedVendor {
  readonly url: string
  /** The bodies that it was sent. */
  readonly sent: Record<string, unknown>[]
  /** How many of its answers the gateway broke off. */
  aborted: number
  /** How many requests ask for its models. */
  listed: number
  /** What it does next; the default is to answer at once. */
  script: Script
  close(): void
}

export interface Script {
  /** Other than 200: an error. */
  readonly status?: number
  /** Waits for it before the headers. */
  readonly headersAfter?: Promise<unknown>
  /** Waits for it between the headers and the first token. */
  readonly tokenAfter?: Promise<unknown>
  readonly outputTokens?: number
  /** A stream goes on until somebody breaks it off. */
  readonly endless?: boolean
  /** Answers requests for its models instead. */
  readonly list?: (response: ServerResponse, request: IncomingMessage) => void
  /** A stream says what it used, and breaks before its end. */
  readonly breaks?: boolean
}

export async function scriptedVendor(name: string): Promise<ScriptedVendor> {
  const server = await listen((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  })
  const vendor: ScriptedVendor = {
    url: server.url,
    sent: [],
    aborted: 0,
    listed: 0,
    script: {},
    close: () => void server.close(),
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET') {
      vendor.listed += 1
      if (vendor.script.list) return vendor.script.list(response, request)
      response.writeHead(vendor.script.status ?? 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'm' }] }))
      return
    }
    const body = (await json(request)) as Record<string, unknown>
    vendor.sent.push(body)
    const { status = 200, headersAfter, tokenAfter, outputTokens = 5, endless, breaks } = vendor.script
    response.on('close', () => {
      if (!response.writableFinished) vendor.aborted += 1
    })
    await headersAfter
    const usage = { prompt_tokens: 10, completion_tokens: outputTokens, total_tokens: 10 + outputTokens }
    const head = { id: `chatcmpl-${name}`, created: 1, model: String(body.model) }
    if (status !== 200) {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { message: `${name} says no`, type: 'server_error' } }))
    } else if (body.stream === true) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const part = (delta: object, more: object = {}) =>
        `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, ...more }] })}\n\n`
      response.write(part({ role: 'assistant', content: '' }))
      await tokenAfter
      while (endless && !response.destroyed)
        if (!response.write(part({ content: 'more '.repeat(2_000) }))) await setImmediate()
      response.write(part({ content: `from ${name}` }))
      if (!breaks) response.write(part({}, { finish_reason: 'stop' }))
      const used = `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [], usage })}\n\n`
      if (breaks) return void response.write(used, () => response.destroy())
      response.write(used)
      response.end('data: [DONE]\n\n')
    } else {
      await tokenAfter
      const message = { role: 'assistant', content: `from ${name}` }
      response.writeHead(200, { 'content-type': 'application/json' })
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      response.end(JSON.stringify({ ...head, object: 'chat.completion', choices, usage }))
    }
  }
  return vendor
}
