// The input schema of a data tool, from the fields of its endpoint. Every word of it is read by a model with every listing, so
// it says only what a model would not guess: the first sentence of a description, and no parameter that has only one value.
import type { JsonSchema } from '../catalog/endpoint.ts'
import type { Field } from '../catalog/field.ts'

export function fieldSchemas(params: Readonly<Record<string, Field>>): Record<string, JsonSchema> {
  const open = Object.entries(params).filter(([, field]) => !('allowed' in field) || field.allowed.length > 1)
  return Object.fromEntries(open.map(([name, field]) => [name, fieldSchema(field)]))
}

function fieldSchema(field: Field): JsonSchema {
  const description = describe(field)
  return { ...typeOf(field), ...(description ? { description } : {}) }
}

function typeOf(field: Field): JsonSchema {
  const preset = (value: unknown) => (field.default === undefined ? {} : { default: value })
  switch (field.kind) {
    case 'boolean':
      return { type: 'boolean', ...(field.default === 'true' ? { default: true } : {}) }
    case 'integer':
      return {
        type: 'integer',
        ...(field.min === 0 ? {} : { minimum: field.min }),
        ...(field.max === undefined ? {} : { maximum: field.max }),
        ...preset(Number(field.default)),
      }
    case 'choice':
      return { type: 'string', enum: field.allowed, ...preset(field.default) }
    case 'date':
      return { type: 'string', format: 'date' }
    default:
      return { type: 'string', ...preset(field.default) }
  }
}

export function firstSentence(text: string): string {
  const end = text.indexOf('. ')
  return end < 0 ? text : text.slice(0, end + 1)
}

function describe(field: Field): string {
  const what = firstSentence(field.description)
  switch (field.kind) {
    // Their values, and names such as `from` and `includeSubDomains`, say enough.
    case 'boolean':
    case 'date':
    case 'choice':
      return ''
    case 'latest': {
      const days = field.daysMax > 0 ? [`1d to ${field.daysMax}d`] : []
      return `${[...days, ...field.months.map((count) => `${count}m`)].join(', ')}; not with from and to.`
    }
    case 'list':
      return `${what} Comma-separated: ${field.allowed.join(', ')}.`
    case 'text':
      return field.form === undefined ? what : `${what} Takes ${field.form}.`
    default:
      return what
  }
}
