// The message for an unknown model: its name, and what it is offered as, or the most similar model that the caller may
// use.
import { Fault, invalid } from '../kernel/fault.ts'
import { nearestId } from '../kernel/nearest.ts'
import { withoutCredentials } from '../kernel/redact.ts'
import type { CatalogDocument, Model } from './document.ts'
import { isToolServerName } from './endpoint.ts'

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

/** The beginning of the name as JSON, so that it stays one line; without API keys that were sent by mistake. */
export function quoteModel(asked: string): string {
  return JSON.stringify(
    withoutCredentials(asked.slice(0, 4 * ASKED_CHARS_MAX))
      .slice(0, ASKED_CHARS_MAX)
      .toWellFormed(),
  )
}

/** One sentence; empty if no model is similar. */
function didYouMean(asked: string, models: Models, may: May): string[] {
  const candidates = Object.entries(models).filter(([uid, model]) => model.enabled && may(uid, model))
  // By its name at a vendor, with or without the maker in front of it.
  const isNamed = (name: string | undefined) => name === asked || name?.endsWith(`/${asked}`)
  const [offered] = candidates.find(([, { routes }]) => routes.some(({ model }) => isNamed(model))) ?? []
  if (offered !== undefined) return [`It is offered here as "${offered}".`]
  const near = nearestId(
    asked,
    candidates.map(([uid, { name }]) => [uid, [uid, name]]),
  )
  return near === undefined ? [] : [`Did you mean "${near}"?`]
}

/** What a key may be restricted to besides the models. */
const DATA_NAMES: readonly string[] = ['socialapi', 'siteanalytics']

/** Models, groups of data endpoints, products and tool servers to which calls may be restricted. */
export function checkModelNames(
  names: readonly string[],
  // Without their extension there are no products.
  { models, products = {} }: Pick<CatalogDocument, 'models'> & Partial<Pick<CatalogDocument, 'products'>>,
  field = 'models',
): void {
  for (const name of names)
    if (
      !Object.hasOwn(models, name) &&
      !DATA_NAMES.includes(name) &&
      !Object.hasOwn(products, name) &&
      !isToolServerName(name)
    )
      throw invalid(
        [
          `${field}: there is no model ${quoteModel(name)}.`,
          ...didYouMean(name, models, () => true),
          'GET /catalog lists them.',
        ].join(' '),
        field,
      )
}
