// Valid and invalid values for a field, made from its description alone: the contract tests run them against every
// parameter of every data endpoint.
import type { Field } from '../src/catalog/field.ts'

export interface FieldCases {
  /** What a caller writes, and what must reach the vendor. */
  readonly good: ReadonlyArray<readonly [given: string, forwarded: string]>
  readonly bad: readonly string[]
}

/** Bad for every field: nothing, and what could break a line or a header. */
const BAD_ANYWHERE = ['', '\r', '\n', '\0', 'x\r\nhost: evil.example', 'x\0', '\u0000']

export function casesOf(field: Field): FieldCases {
  const { good, bad } = byKind(field)
  return { good, bad: [...BAD_ANYWHERE, ...bad] }
}

const words = (all: string) => all.split(' ')
const same = (values: readonly string[]) => values.map((value) => [value, value] as const)

const LABEL_63 = 'a'.repeat(63)
const DOMAIN_253 = `${LABEL_63}.${LABEL_63}.${LABEL_63}.${'b'.repeat(57)}.com`

function byKind(field: Field): FieldCases {
  switch (field.kind) {
    case 'text':
      return textCases(field.pattern, field.example)
    case 'domain':
      return {
        good: same([
          ...words('example.com sub.example.co.uk xn--bcher-kva.example Example.COM 1a.example'),
          DOMAIN_253,
        ]),
        bad: [
          ...words('a.com,b.com https://example.com example.com/path example.com:443 user:pass@example.com'),
          ...words('93.184.216.34 [::1] ::1 2130706433 0x7f.1 localhost example.com. .example.com exa..mple.com'),
          ' example.com',
          'example.com ',
          'exa mple.com',
          `${'a'.repeat(64)}.com`,
          `b${DOMAIN_253}`,
          ...words('bücher.example under_score.example -a.example a-.example *'),
        ],
      }
    case 'boolean':
      return {
        good: same(field.allowed),
        bad: [...words('True FALSE 1 0 yes null true,false'), ' true', ...missing(['true', 'false'], field.allowed)],
      }
    case 'integer':
      return integerCases(field.min, field.max)
    case 'choice':
      return {
        good: same(field.allowed),
        bad: [
          'nope',
          ...field.allowed.map((value) => ` ${value}`),
          ...missing(
            field.allowed.flatMap((value) => [value.toLowerCase(), value.toUpperCase()]),
            field.allowed,
          ),
          `${field.allowed[0]},${field.allowed[0]}`,
        ],
      }
    case 'list':
      return {
        good: [
          ...same(field.allowed),
          [field.allowed.join(', '), field.allowed.join(',')],
          twice(field.allowed[0] ?? ''),
        ],
        bad: ['nope', ',', `${field.allowed[0]},`, `${field.allowed[0]},nope`, (field.allowed[0] ?? '').toUpperCase()],
      }
    case 'date':
      return {
        good: [
          ['2026-10-01', '2026|10|01'],
          ['2026|10|01', '2026|10|01'],
        ],
        bad: words('2026-02-30 2026-13-01 2026/10/01 20261001 2026-10|01 2026-1-1 2026-10-01T00:00:00Z today'),
      }
    case 'latest': {
      const days = field.daysMax > 0 ? ['1d', '7d', '28d', '90d', `${field.daysMax}d`] : []
      const months = field.months.map((count) => `${count}m`)
      return {
        good: same([...days, ...months]),
        bad: [
          ...words('0d 367d 0m 28D 1M 1w 1y 28 d 028d -1d 1.5d 1d,2d 9999999d'),
          ' 28d',
          ...missing(words('1d 28d 1m 2m 3m 4m 5m 6m 7m 12m'), [...days, ...months]),
        ],
      }
    }
    case 'json-array':
      return {
        good: [
          ...same(['[]', '[{"url":"example.com/a b","n":1}]', '["ü+&=%7C"]']),
          [encodeURIComponent('["x y"]'), '["x y"]'],
        ],
        bad: [...words('{} "x" null 1 [ [1,] x %5B%0A%5D'), encodeURIComponent(encodeURIComponent('["x"]')), big()],
      }
    case 'number':
      return { good: same(['1', '0.5']), bad: ['x', '1e3', '', '1,5'] }
    case 'values':
      return { good: same(['a,b', 'c']), bad: [',', 'a,,b'] }
  }
}

function textCases(pattern: string | undefined, example: string): FieldCases {
  const good: [string, string][] = [
    [example, example],
    [`  ${example}\t`, example],
  ]
  if (pattern !== undefined) return { good, bad: ['   ', '!', `${example} !!`, 'é', 'x'.repeat(2049)] }
  return {
    good: [
      ...good,
      ['a+b&c=d%#?/|;,', 'a+b&c=d%#?/|;,'],
      ['naïve café 東京 🙂', 'naïve café 東京 🙂'],
      ['%0d%0a', '%0d%0a'],
      ['é'.repeat(1024), 'é'.repeat(1024)],
      [` ${'x'.repeat(2048)} `, 'x'.repeat(2048)],
    ],
    bad: ['   ', '\t', '\u00a0', 'x'.repeat(2049), `${'é'.repeat(1024)}x`],
  }
}

function integerCases(min: number, max: number | undefined): FieldCases {
  const top = max ?? 999_999_999_999_999
  return {
    good: same([...new Set([min, min + 1, Math.floor((min + top) / 2), top - 1, top].map(String))]),
    bad: ['-1', '+1', '01', '1.0', '1e2', '0x1', ' 1', '1 ', '１', '٣', 'one', '1,2', '99999999999999999999']
      .concat(min > 0 ? [String(min - 1)] : [])
      .concat(max === undefined ? [] : [String(max + 1)]),
  }
}

const missing = (values: readonly string[], from: readonly string[]) => values.filter((value) => !from.includes(value))
const twice = (value: string) => [`${value},${value}`, value] as const
const big = () => `[${'1,'.repeat(1024)}1]`
