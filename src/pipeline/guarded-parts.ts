// What guardrails check besides the body of a request: the models that it may reach, and its path and query.
import type { Model } from '../catalog/document.ts'
import { isToolSpec } from '../catalog/endpoint.ts'
import type { Catalog } from '../catalog/store.ts'
import { type JsonText, objectOf, objects, readJson } from '../kernel/json.ts'
import type { Incoming } from './read.ts'

/** The model, and those that the catalog names for what is too long for it. */
export function withLonger(product: string, { document: { models } }: Catalog): string[] {
  const all: string[] = []
  for (let next: string | undefined = product; next !== undefined && !all.includes(next); ) {
    all.push(next)
    const model: Model | undefined = Object.hasOwn(models, next) ? models[next] : undefined
    next = model && 'contextFallback' in model ? model.contextFallback : undefined
  }
  return all
}

/** A data endpoint has its input in the path and query too. */
export function withQuery({ params, query, body: { json } }: Incoming): JsonText {
  const asked = [...new URLSearchParams(query)].map(([name, value]) => ({ [name]: value }))
  const text = `{"params":${JSON.stringify(params)},"query":${JSON.stringify(asked)},"body":${json.text}}`
  return readJson(Buffer.from(text))
}

/** The parts of the request as guardrails left them. */
export function givenIn(json: JsonText, whole: JsonText, { body, spec }: Incoming): Partial<Incoming> {
  if (spec.sells !== 'data' || isToolSpec(spec)) return { body: { ...body, json } }
  if (json === whole) return {}
  const { params, query, body: left } = json.value
  const asked = objects(query).flatMap((one) => Object.entries(one).map(([name, value]) => [name, String(value)]))
  return {
    params: objectOf(params) as Record<string, string>, // As they were given: only their texts were exchanged.
    query: new URLSearchParams(asked).toString(),
    body: { ...body, json: readJson(Buffer.from(JSON.stringify(left))) },
  }
}
