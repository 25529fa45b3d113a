// In tests every answer of the operator and console API is read by its view: a field that is missing, of another type, or
// not in the view fails the test that asked for it.
import assert from 'node:assert/strict'
import type { FastifyInstance } from 'fastify'

/** To be called before the server listens. What it answers is to be called at the end, and throws what was found. */
export function checkAnswers(app: FastifyInstance): () => void {
  const problems = new Set<string>()
  app.addHook('preSerialization', async (request, _reply, payload) => {
    const { answer } = request.routeOptions.config
    if (!answer || !isSuccess(payload)) return payload
    const data: unknown = JSON.parse(JSON.stringify(payload.data))
    const { method, routeOptions } = request
    try {
      assert.deepEqual(unknownFields(data, answer.parse(data)), [])
    } catch (error) {
      problems.add(`${method} ${routeOptions.url} does not answer what its view says: ${(error as Error).message}`)
    }
    return payload
  })
  return () => assert.deepEqual([...problems], [])
}

function isSuccess(payload: unknown): payload is { data: unknown } {
  return isObject(payload) && payload.success === true
}

/** What reading has left out, because the view does not name it. */
function unknownFields(given: unknown, read: unknown, path = 'data'): string[] {
  if (!isObject(given)) return []
  if (!isObject(read)) return [path]
  return Object.entries(given).flatMap(([name, value]) =>
    Object.hasOwn(read, name) ? unknownFields(value, read[name], `${path}.${name}`) : [`${path}.${name}`],
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
