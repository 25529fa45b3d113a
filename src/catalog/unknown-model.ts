// What a caller is told about a model that there is not: the name as it was asked for, and the nearest one that would do.
import { Fault } from '../kernel/fault.ts'
import { nearestId } from '../kernel/nearest.ts'
import { withoutCredentials } from '../kernel/redact.ts'
import type { Model } from './document.ts'

const ASKED_CHARS_MAX = 100

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
  const near = nearestId(
    asked,
    candidates.map(([uid, { name }]) => [uid, [uid, name]]),
  )
  return near === undefined ? [] : [`Did you mean "${near}"?`]
}
