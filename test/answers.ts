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
      assert.deepEqual(answer.parse(data), data)
    } catch (error) {
      problems.add(`${method} ${routeOptions.url} does not answer what its view says: ${(error as Error).message}`)
    }
    return payload
  })
  return () => assert.deepEqual([...problems], [])
}

function isSuccess(payload: unknown): payload is { data: unknown } {
  return typeof payload === 'object' && payload !== null && 'success' in payload && payload.success === true
}
