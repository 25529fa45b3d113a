// A guardrail while it is edited: lists as the texts that people type.
import type { Catalog, GuardrailRule } from '../../wire.ts'

export type Kind = 'redact' | 'hook' | 'moderate'
type Phase = NonNullable<NonNullable<GuardrailRule['redact']>['on']>[number]
export type PatternName = NonNullable<NonNullable<GuardrailRule['redact']>['patterns']>[number]

export interface RuleDraft {
  name: string
  kind: Kind
  enabled: boolean
  on: readonly Phase[]
  patterns: readonly PatternName[]
  /** The operator's own, each with the word in its placeholder. */
  own: readonly { word: string; source: string }[]
  url: string
  /** Empty: as the catalog says. */
  deadlineMs: string
  onFailure: 'block' | 'allow'
  model: string
  categories: string
  accounts: string
  keys: string
  models: string
  labels: string
}

export const EMPTY_RULE: RuleDraft = {
  name: '',
  kind: 'redact',
  enabled: true,
  on: ['request'],
  patterns: [],
  own: [],
  url: '',
  deadlineMs: '',
  onFailure: 'block',
  model: '',
  categories: '',
  accounts: '',
  keys: '',
  models: '',
  labels: '',
}

export const PATTERNS: readonly (readonly [name: PatternName, label: string, hint: string])[] = [
  ['email', 'Email addresses', 'jo@example.org'],
  ['phone', 'Phone numbers', 'With a country or area code: +49 30 901820'],
  ['card', 'Card numbers', 'With the right check digit'],
  ['iban', 'Bank accounts (IBAN)', 'With the right length and check digits'],
  ['api_key', 'API keys and passwords', 'Of well-known services, bearer tokens, “password”: “…”'],
  ['private_key', 'Private keys', 'In PEM: -----BEGIN PRIVATE KEY-----'],
]

const joined = (names: readonly string[] | undefined) => (names ?? []).join(', ')

export function draftOf(name: string, rule: GuardrailRule): RuleDraft {
  const { redact, hook, moderate } = rule
  const { on = ['request'] } = redact ?? hook ?? moderate ?? {}
  const { deadlineMs, onFailure = 'block' } = hook ?? moderate ?? {}
  return {
    name,
    on,
    onFailure,
    enabled: rule.enabled !== false,
    kind: hook ? 'hook' : moderate ? 'moderate' : 'redact',
    patterns: redact?.patterns ?? [],
    own: Object.entries(redact?.own ?? {}).map(([word, source]) => ({ word, source })),
    url: hook?.url ?? '',
    deadlineMs: deadlineMs === undefined ? '' : String(deadlineMs),
    model: moderate?.model ?? '',
    categories: joined(moderate?.categories),
    accounts: joined(rule.accounts),
    keys: joined(rule.keys),
    models: joined(rule.models),
    labels: joined(Object.entries(rule.labels ?? {}).map(([label, value]) => `${label}=${value}`)),
  }
}

const listOf = (text: string) =>
  text
    .split(/[\s,]+/)
    .map((word) => word.trim())
    .filter(Boolean)

/** Values of labels and names of categories may have spaces. */
const partsOf = (text: string) =>
  text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter(Boolean)

const given = <T>(name: string, value: readonly T[]) => (value.length > 0 ? { [name]: value } : {})

export const ownOf = ({ own }: Pick<RuleDraft, 'own'>) =>
  Object.fromEntries(own.filter(({ word, source }) => word && source).map(({ word, source }) => [word.trim(), source]))

/** In the form of the catalog; what stands at its default is left out, and the server checks the rest. */
export function ruleOf(draft: RuleDraft): GuardrailRule {
  const labels = partsOf(draft.labels).map((pair) => {
    const at = pair.indexOf('=')
    return at < 0 ? [pair, ''] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
  })
  const late = draft.deadlineMs.trim() === '' ? {} : { deadlineMs: Number(draft.deadlineMs) }
  const asking = { on: [...draft.on], ...late, onFailure: draft.onFailure }
  return {
    ...(draft.enabled ? {} : { enabled: false }),
    ...given('accounts', listOf(draft.accounts)),
    ...given('keys', listOf(draft.keys)),
    ...given('models', listOf(draft.models)),
    ...(labels.length > 0 ? { labels: Object.fromEntries(labels) } : {}),
    ...(draft.kind === 'redact'
      ? { redact: { patterns: [...draft.patterns], own: ownOf(draft), on: [...draft.on] } }
      : {}),
    ...(draft.kind === 'hook' ? { hook: { url: draft.url.trim(), ...asking } } : {}),
    ...(draft.kind === 'moderate'
      ? { moderate: { model: draft.model, ...given('categories', partsOf(draft.categories)), ...asking } }
      : {}),
  }
}

/** The catalog with this rule; undefined: without it. */
export function withRule(
  { guardrails, ...others }: Catalog['document'],
  name: string,
  rule: GuardrailRule | undefined,
): Catalog['document'] {
  const { [name]: _, ...rest } = guardrails ?? {}
  // A rule that is there keeps its place: rules are asked in their order.
  const next = !rule ? rest : { ...guardrails, [name]: rule }
  return Object.keys(next).length > 0 ? { ...others, guardrails: next } : others
}

// In words, for the list.

export const PHASE_WORDS: Readonly<Record<Phase, string>> = { request: 'Requests', answer: 'Answers' }

export function checkWords({ redact, hook, moderate }: GuardrailRule): readonly [kind: string, about: string] {
  if (hook) return ['Hook', URL.parse(hook.url)?.host ?? hook.url]
  if (moderate) return ['Moderation', moderate.model]
  const own = Object.keys(redact?.own ?? {})
  const named = PATTERNS.filter(([name]) => redact?.patterns?.includes(name)).map(([, label]) => label)
  return ['Redaction', [...named, ...own].join(', ')]
}

export function scopeWords({ accounts, keys, models, labels }: GuardrailRule): string {
  const counted = (names: readonly string[] | undefined, one: string) =>
    names ? [names.length === 1 ? `1 ${one}` : `${names.length} ${one}s`] : []
  const parts = [
    ...counted(accounts, 'account'),
    ...counted(keys, 'key'),
    ...(models ? [`models ${models.join(', ')}`] : []),
    ...Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`),
  ]
  return parts.length === 0 ? 'All calls of models' : parts.join('; ')
}
