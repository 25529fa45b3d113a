// The schema of the Helm chart's values: its settings are those of the gateway, so that a misspelt one or a secret
// among them is refused before anything is installed.
import { SETTINGS } from '../../src/config.ts'

/** What the image sets itself, and what only the command line reads. */
const OTHERS = new Set(['HOST', 'PORT', 'TOLLGATE_DATA', 'TOLLGATE_URL', 'TOLLGATE_KEY'])
const SECRET = /(?:SECRET|TOKEN|PASSWORD|ACCESS_KEY)|^DATABASE_URL$|_(?:SMTP|ANALYTICS)_URL$|_LEDGERS$/

/** Settings that belong into the Secret. */
export const SECRET_SETTINGS = Object.keys(SETTINGS).filter((name) => SECRET.test(name))

export function chartSchema(): string {
  const names = Object.keys(SETTINGS).filter((name) => !OTHERS.has(name) && !SECRET_SETTINGS.includes(name))
  const settings = names.map((name) => [
    name,
    { description: SETTINGS[name]?.description, type: ['string', 'number', 'boolean'] },
  ])
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: {
      image: { type: 'object', properties: { digest: { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' } } },
      replicas: { type: 'integer', minimum: 1 },
      existingSecret: { type: 'string' },
      settings: { type: 'object', additionalProperties: false, properties: Object.fromEntries(settings) },
      ledgers: {
        type: 'array',
        items: {
          type: 'object',
          required: ['name', 'storage'],
          additionalProperties: false,
          properties: {
            name: { type: 'string', pattern: '^[a-z]([a-z0-9-]{0,28}[a-z0-9])?$', not: { const: 'control' } },
            region: { type: 'string', pattern: '^[a-z][a-z0-9-]{0,29}$' },
            instances: { type: 'integer', minimum: 2 },
            storage: { type: 'string' },
            storageClass: { type: 'string' },
          },
        },
      },
    },
  }
  return `${JSON.stringify(schema, null, 2)}\n`
}
