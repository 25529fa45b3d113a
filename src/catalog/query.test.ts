import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '../kernel/fault.ts'
import { ANALYTICS } from './analytics.ts'
import type { DataEndpointSpec } from './endpoint.ts'
import type { Field } from './field.ts'
import { cacheKey, type NormalisedQuery, readQuery, vendorAddress } from './query.ts'

const NOW_MS = Date.UTC(2026, 10, 15)

function endpoint(path: string): DataEndpointSpec {
  const spec = ANALYTICS.find(({ vendorPath }) => vendorPath === path)
  assert.ok(spec, path)
  return spec
}

function read(path: string, raw: string, nowMs = NOW_MS): Map<string, string> {
  return new Map(readQuery(endpoint(path), raw, nowMs))
}

function refused(path: string, raw: string, words: RegExp): void {
  assert.throws(
    () => read(path, raw),
    (error) => error instanceof Fault && error.code === 10000 && error.status === 400 && words.test(error.message),
    `${path}?${raw}`,
  )
}

const SITE = 'keys=example.com'

test('names are compared after decoding, with their case', () => {
  assert.equal(read('websites/visits', 'k%65ys=example.com').get('keys'), 'example.com')
  refused('websites/visits', 'KEYS=example.com', /did you mean keys\?/)
  refused('websites/visits', 'key=example.com', /"key" is not a parameter/)
  refused('websites/visits', 'keys[]=example.com', /"keys\[\]" is not a parameter/)
  refused('websites/visits', `${SITE}&__proto__=1`, /"__proto__" is not a parameter/)
  refused('websites/visits', `${SITE}&constructor=1`, /"constructor" is not a parameter/)
  refused('websites/visits', `${SITE}&=1`, /"" is not a parameter/)
  refused('websites/visits', `${SITE}&${'%C3%A9'.repeat(500)}=1`, /is not a parameter/)
})

test('a name or value that is not percent-encoded UTF-8 is refused, and a plus is a space', () => {
  for (const bad of ['é', '東京', '%', '%4', '%zz', '%ff', '%c0%80', '%ed%a0%80', '%f4%90%80%80', '%e4%bd'])
    refused('keywords/websites', `keys=${bad}`, /"keys" is not valid percent-encoded UTF-8/)
  refused('keywords/websites', 'keys=x&%ff=1', /query name is not valid/)
  assert.equal(read('keywords/websites', 'keys=running+shoes').get('keys'), 'running shoes')
  assert.equal(read('keywords/websites', 'keys=a%2Bb').get('keys'), 'a+b')
  assert.equal(read('keywords/websites', 'keys=caf%C3%A9').get('keys'), 'café')
  assert.equal(read('keywords/websites', '&keys=x&&').get('keys'), 'x')
})

test('the fields that differ by one letter are kept apart', () => {
  assert.equal(read('websites/backlinks', 'Key=example.com').get('Key'), 'example.com')
  refused('websites/backlinks', 'key=example.com', /did you mean Key\?/)
  refused('websites/backlinks', 'keys=example.com', /"keys" is not a parameter/)
  assert.equal(read('keywords/suggestions', 'keyword=x&websource=Desktop').get('websource'), 'Desktop')
  refused('keywords/suggestions', 'keyword=x&webSource=Desktop', /did you mean websource\?/)
  assert.equal(read('websites/search-performance', `${SITE}&SourceType=Paid`).get('SourceType'), 'Paid')
  refused('websites/search-performance', `${SITE}&sourceType=Paid`, /did you mean SourceType\?/)
  const dates = 'key=example.com&from=2026-10-01&to=2026-10-31'
  const both = read('websites/outgoing-traffic', `${dates}&orderby=Rank+asc`)
  assert.deepEqual([both.get('orderby'), both.get('orderBy')], ['Rank asc', 'Share desc'])
  refused('websites/social-traffic', `${SITE}&webSource=Total`, /"webSource" is not a parameter/)
  refused('websites/similar-sites', `${SITE}&latest=3m`, /"latest" is not a parameter/)
  for (const name of ['latest', 'pageSize', 'rowsPerPage', 'includeSubDomains', 'timeGranularity'])
    refused('websites/outgoing-traffic', `${dates}&${name}=1`, /is not a parameter/)
})

test('country 0 is kept, 999 is the default, and histories know only 999', () => {
  assert.equal(read('websites/visits', `${SITE}&country=0`).get('country'), '0')
  assert.equal(read('websites/visits', SITE).get('country'), '999')
  refused('websites/history/visits', `${SITE}&country=840`, /country must be only 999/)
})

test('dates come in pairs, in order, and never with latest', () => {
  const both = read('websites/visits', `${SITE}&from=2026-10-01&to=2026|10|31`)
  assert.deepEqual([both.get('from'), both.get('to'), both.get('latest')], ['2026|10|01', '2026|10|31', undefined])
  assert.equal(both.get('isWindow'), 'false')
  refused('websites/visits', `${SITE}&from=2026-10-01`, /from and to must be given together/)
  refused('websites/visits', `${SITE}&to=2026-10-01`, /from and to must be given together/)
  refused('websites/visits', `${SITE}&from=2026-10-02&to=2026-10-01`, /from must not be after to/)
  refused('websites/visits', `${SITE}&from=2026-10-01&to=2026-10-02&latest=28d`, /latest must not be combined/)
  refused('websites/visits', `${SITE}&compareFrom=2026-10-01`, /compareFrom and compareTo must be given together/)
  refused('websites/visits', `${SITE}&compareFrom=2026-10-02&compareTo=2026-10-01`, /compareFrom must not be after/)
  const compared = read('websites/visits', `${SITE}&compareFrom=2026-09-01&compareTo=2026-09-30`)
  assert.deepEqual([compared.get('compareFrom'), compared.get('from')], ['2026|09|01', '2026|10|16'])
  refused('websites/outgoing-traffic', 'key=example.com', /from is required/)
})

test('month selectors go without a rolling window, except in the overview of keywords', () => {
  const months = read('websites/engagement', `${SITE}&latest=3m`)
  assert.deepEqual(
    ['from', 'to', 'latest', 'isWindow', 'timeGranularity'].map((name) => months.get(name)),
    ['2026|08|01', '2026|10|31', '3m', 'false', 'Monthly'],
  )
  assert.equal(read('websites/channels', `${SITE}&latest=2m&timeGranularity=Daily`).get('timeGranularity'), 'Daily')
  refused('websites/engagement', `${SITE}&latest=3m&isWindow=true`, /isWindow must be false with latest=3m/)
  for (const latest of ['4m', '5m', '12m', '0d', '367d', '28D'])
    refused('websites/visits', `${SITE}&latest=${latest}`, /latest must be/)
  refused('websites/incoming-referrals', 'key=example.com&latest=1m', /latest must be 1d to 366d/)
  const overview = read('websites/keywords', `${SITE}&latest=1m`)
  assert.deepEqual([overview.get('pageSize'), overview.get('isWindow')], ['5', 'false'])
  const explicit = read('websites/keywords', `${SITE}&latest=1m&isWindow=true&pageSize=50`)
  assert.deepEqual([explicit.get('pageSize'), explicit.get('isWindow')], ['50', 'true'])
  refused('websites/keywords', `${SITE}&latest=2m`, /latest must be/)
  assert.equal(read('websites/history/visits', `${SITE}&latest=4m`).get('from'), '2026|07|01')
  refused('websites/history/visits', `${SITE}&latest=28d`, /latest must be 1m, 2m, 3m, 4m, 5m, 6m/)
  assert.equal(read('websites/geography', `${SITE}&latest=7d`).get('isWindow'), 'true')
})

test('histories take complete months inside the last six', () => {
  const path = 'websites/history/bounce-rate'
  assert.equal(read(path, `${SITE}&from=2026-05-01&to=2026-05-31`).get('to'), '2026|05|31')
  assert.equal(read(path, `${SITE}&from=2026-05-01&to=2026-10-31`).get('from'), '2026|05|01')
  refused(
    path,
    `${SITE}&from=2026-05-02&to=2026-05-31`,
    /from must be the first day of a month.*2026-05-01 to 2026-10-31/,
  )
  refused(path, `${SITE}&from=2026-05-01&to=2026-05-30`, /to must be the last day of a month/)
  refused(path, `${SITE}&from=2026-04-01&to=2026-05-31`, /from must be/)
  refused(path, `${SITE}&from=2026-10-01&to=2026-11-30`, /to must be/)
  refused(path, `${SITE}&isWindow=true`, /isWindow must be only false/)
  refused(path, `${SITE}&timeGranularity=Daily`, /timeGranularity must be only Monthly/)
})

test('fixed values are fixed, and score bounds are in order', () => {
  refused('websites/similar-sites', `${SITE}&isWindow=true`, /isWindow must be only false/)
  refused('websites/similar-sites', `${SITE}&orderBy=Rank+desc`, /orderBy must be only Affinity desc/)
  refused('websites/incoming-referrals', 'key=example.com&selectedTab=other', /only incomingTraffic/)
  refused(
    'websites/backlinks',
    'Key=example.com&DomainScoreFrom=60&DomainScoreTo=9',
    /DomainScoreFrom must not be after/,
  )
  const bounds = read('websites/backlinks', 'Key=example.com&DomainScoreFrom=9&DomainScoreTo=60')
  assert.deepEqual([bounds.get('DomainScoreFrom'), bounds.get('DomainScoreTo')], ['9', '60'])
})

test('equal questions have one cache key, whatever their order and spelling', () => {
  const spec = endpoint('websites/visits')
  const key = (raw: string) => cacheKey(spec, readQuery(spec, raw, NOW_MS))
  assert.equal(key(`${SITE}&country=840&webSource=Total`), key(`country=840&k%65ys=example.com`))
  assert.equal(key(`${SITE}&from=2026-10-01&to=2026-10-02`), key(`to=2026|10|02&from=2026-10-01&${SITE}`))
  assert.notEqual(key(SITE), key(`${SITE}&country=840`))
  const [other] = ANALYTICS
  assert.ok(other)
  assert.notEqual(key(SITE), cacheKey(other, readQuery(spec, SITE, NOW_MS)))
})

/** Pieces from which hostile queries are put together. */
const PIECES = [
  '%0d',
  '%0A',
  '%00',
  '\r',
  '\n',
  '\0',
  '%250d',
  '%25',
  '%',
  '%c0%8a',
  '%e5%98%8a',
  '%E5%98%8D',
  'Host:x',
  ' ',
  '+',
  '#',
  '/../',
  '%2e%2e%2f',
  '&',
  '=',
  ';',
  'a',
  'é',
  '%u000a',
]

test('no encoding of CR, LF or NUL reaches the vendor, in 2,048 tries per parameter', () => {
  let state = 20261115
  const next = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  let accepted = 0
  // Endpoints share most of their parameters; each description is tried once.
  const tried = new Set<Field>()
  for (const spec of ANALYTICS) {
    const required = Object.entries(spec.params).filter(([, field]) => field.required)
    for (const [name, field] of Object.entries(spec.params)) {
      if (tried.has(field)) continue
      tried.add(field)
      const rest = required.filter(([other]) => other !== name).map(([other, field]) => `${other}=${field.example}`)
      for (let round = 0; round < 2048; round++) {
        let value = ''
        for (let count = 1 + next(4); count > 0; count--) value += PIECES[next(PIECES.length)]
        const query = attempt(spec, [...rest, `${name}=${value}`].join('&'))
        if (!query) continue
        accepted++
        const address = vendorAddress(spec, query)
        assert.match(address, /^[\x21-\x7e]+$/)
        assert.doesNotMatch(address, /%0[0ad]/i)
        assert.ok(address.startsWith(`/${spec.vendorPath}`))
      }
    }
  }
  assert.ok(accepted > 1000, 'some were plain text after all')
})

function attempt(spec: DataEndpointSpec, raw: string): NormalisedQuery | undefined {
  try {
    return readQuery(spec, raw, NOW_MS)
  } catch (error) {
    assert.ok(error instanceof Fault && error.kind === 'request_invalid', String(error))
    assert.ok(error.message.isWellFormed() && !/[\0\r\n]/.test(error.message), error.message)
    return undefined
  }
}
