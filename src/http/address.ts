// The address under which callers reach the gateway: as configured, or as it listens.
import type { FastifyInstance } from 'fastify'

export function publicUrlOf(
  app: FastifyInstance,
  config: { PUBLIC_URL?: string | undefined; HOST: string; PORT: number },
): string {
  if (config.PUBLIC_URL) return config.PUBLIC_URL.replace(/(?<!\/)\/+$/, '')
  const address = app.server.address()
  const port = typeof address === 'object' && address ? address.port : config.PORT
  const everywhere = config.HOST === '0.0.0.0' || config.HOST === '::'
  const host = everywhere ? 'localhost' : config.HOST
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Stands in pages of the documentation for the address under which they are read; that is put in when a page is sent. */
export const ORIGIN = 'http://127.0.0.1:8080'
