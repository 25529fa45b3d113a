// A rule of redaction, tried on a text before it is applied.

import { namedPattern, ownPattern, type Pattern } from './patterns.ts'
import { Redacted } from './redaction.ts'
import { compilePattern, type Redaction } from './rules.ts'
import type { SampleView } from './views.ts'

const PLACEHOLDER_DIGITS = 12

export function redactSample({ patterns, own }: Pick<Redaction, 'patterns' | 'own'>, text: string): SampleView {
  const problems = Object.entries(own).flatMap(([pattern, source]) => {
    const read = compilePattern(source)
    return typeof read === 'string' ? [{ pattern, message: read }] : []
  })
  const sound = Object.entries(own).filter(([label]) => !problems.some(({ pattern }) => pattern === label))
  const all: (Pattern & { readonly name: string })[] = [
    ...patterns.map((name) => ({ ...namedPattern('', name), name })),
    ...sound.map(([name, source]) => ({ ...ownPattern('', name, source), name })),
  ]
  const times = new Map<string, number>()
  const redacted = new Redacted(
    (label, _secret, turn) => `[${label}_${String(turn + 1).padStart(PLACEHOLDER_DIGITS, '0')}]`,
  )
  const left = redacted.hide(text, all, ({ label }) => {
    const { name = label } = all.find((one) => one.label === label) ?? {}
    times.set(name, (times.get(name) ?? 0) + 1)
  })
  return { text: left, found: [...times].map(([pattern, count]) => ({ pattern, times: count })), problems }
}
