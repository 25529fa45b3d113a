// What a caller is told about a model that there is not: the name as it was asked for, and the nearest one that would do.
import { Fault } from '../kernel/fault.ts'
import { withoutCredentials } from '../kernel/redact.ts'
import type { Model } from './document.ts'

const ASKED_CHARS_MAX = 100
/** Nobody mistypes a longer name, and comparing it would cost more than the answer is worth. */
const COMPARED_CHARS_MAX = 60

type Models = Readonly<Record<string, Model>>
type May = (uid: string, model: Model) => boolean

export function unknownModel(asked: string, models: Models, may: May): Fault {
  const message = [
    `The model ${quoteModel(asked)} does not exist or is not enabled.`,
    ...didYouMean(asked, models, may),
    'GET /v1/models lists the models of this key.',
  ].join(' ')
  return new Fault('model_unknown', { message, param: 'model' })
}

/** Its beginning, as JSON writes it, so that it stays one line; a key that somebody put there is left out. */
export function quoteModel(asked: string): string {
  return JSON.stringify(
    withoutCredentials(asked.slice(0, 4 * ASKED_CHARS_MAX))
      .slice(0, ASKED_CHARS_MAX)
      .toWellFormed(),
  )
}

/** One sentence, or none where nothing is near. */
export function didYouMean(asked: string, models: Models, may: May): string[] {
  const candidates = Object.entries(models).filter(([uid, model]) => model.enabled && may(uid, model))
  const near = nearest(
    asked,
    candidates.map(([uid, { name }]) => [uid, [uid, name]] as const),
  )
  return near === undefined ? [] : [`Did you mean "${near}"?`]
}

/** The id whose names are nearest, whatever the case and the signs between words. */
export function nearest(
  name: string,
  candidates: readonly (readonly [id: string, names: readonly string[]])[],
): string | undefined {
  const wanted = plain(name)
  if (wanted === '' || name.length > COMPARED_CHARS_MAX) return undefined
  let best: string | undefined
  // A third may be wrong; beyond that it is another name.
  let bound = Math.floor(wanted.length / 3)
  for (const [id, names] of candidates) {
    for (const name of names) {
      const far = distance(wanted, plain(name), bound)
      if (far > bound || (best !== undefined && far === bound)) continue
      best = id
      bound = far
    }
  }
  return best
}

const plain = (name: string) => name.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, '')

/** Levenshtein's, or more than the bound as soon as that is certain. */
function distance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) > bound) return bound + 1
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    if (Math.min(...next) > bound) return bound + 1
    row = next
  }
  return row.at(-1) ?? bound + 1
}
