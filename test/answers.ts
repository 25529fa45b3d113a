// In tests every answer of the operator and console API is read by its view: a field that is missing, of another type,
// or not in the view fails the test that asked for it.
import assert from 'node:assert/strict'
import type { WebServer } from '../src/api/server/server.ts'
import type { Resource } from '../src/operator/resource.ts'

/** To be called before the server listens. What it answers is to be called at the end, and throws what was found. */
export function checkAnswers(app: WebServer): () => void {
  const problems = new Set<string>()
  app.answered = ({ resource }, { headers, body }) => {
    const { answer, method, path } = (resource ?? {}) as Partial<Resource>
    const isJson = headers?.['content-type']?.includes('application/json')
    const payload: unknown = answer && isJson && typeof body === 'string' ? JSON.parse(body) : undefined
    if (!answer || !isSuccess(payload)) return
    try {
      assert.deepEqual(unknownFields(payload.data, answer.parse(payload.data)), [])
    } catch (error) {
      problems.add(`${method} ${path} does not answer what its view says: ${(error as Error).message}`)
    }
  }
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
