import { assert, test } from '../../../test/kit.ts'
import { Router } from './router.ts'

const router = new Router<string>()
for (const [method, path] of [
  ['GET', '/v1/jobs'],
  ['GET', '/v1/jobs/{id}'],
  ['DELETE', '/v1/jobs/{id}'],
  ['GET', '/v1/jobs/{id}/events'],
  ['POST', '/v1/jobs/all'],
  ['GET', '/v1/models/{id}'],
  ['POST', '/v1/models/{model}:generateContent'],
] as const)
  router.add(path, [method], `${method} ${path}`, 'native')
for (const path of ['/console/*', '/console/api/session']) router.add(path, ['GET'], `GET ${path}`)

function found(method: string, url: string) {
  const at = router.find(method, url)
  if (!at) return 'nothing'
  const entry = at.place.methods.get(method)
  if (!entry) return [...at.place.methods.keys()].join(', ')
  return [entry.route, ...(at.values ?? ['unreadable'])].join(' ')
}

test('a path leads to its endpoint however it is spelt, and parameters are what the caller meant', () => {
  for (const [method, url, expected] of [
    ['GET', '/v1/jobs', 'GET /v1/jobs'],
    ['GET', '//v1///jobs/?limit=1', 'GET /v1/jobs'],
    ['GET', '/v1/%6aobs', 'GET /v1/jobs'],
    ['GET', 'http://host:80/v1/jobs?x', 'GET /v1/jobs'],
    ['GET', '/v1/jobs/7', 'GET /v1/jobs/{id} 7'],
    ['GET', '/v1/jobs/a%2Fb', 'GET /v1/jobs/{id} a/b'],
    ['GET', '/v1/jobs/a%252Fb', 'GET /v1/jobs/{id} a%2Fb'],
    ['GET', '/v1/jobs/a%20b#x', 'GET /v1/jobs/{id} a b'],
    ['GET', `/v1/jobs/${'x'.repeat(301)}`, 'GET /v1/jobs/{id} unreadable'],
    ['GET', '/v1/jobs/a%00b', 'GET /v1/jobs/{id} unreadable'],
    ['POST', '/v1/jobs/all', 'POST /v1/jobs/all'],
    // Another endpoint takes the method at a path that may be anything.
    ['GET', '/v1/jobs/all', 'GET /v1/jobs/{id} all'],
    ['PUT', '/v1/jobs/7', 'GET, DELETE'],
    ['GET', '/v1/jobs/7/events', 'GET /v1/jobs/{id}/events 7'],
    ['GET', '/v1/jobs/7/other', 'nothing'],
    ['GET', '/V1/jobs', 'nothing'],
    ['GET', '/v1/__proto__', 'nothing'],
    ['GET', '/console', 'nothing'],
    ['GET', '/console/a%2Fb//c/', 'GET /console/* a/b/c'],
    ['GET', `/console/${'x'.repeat(301)}`, `GET /console/* ${'x'.repeat(301)}`],
    ['GET', 'http://host', 'nothing'],
    ['PUT', '/console/a/b', 'GET'],
    ['PUT', '/console/api/nothing', 'nothing'],
  ] as const)
    assert.equal(found(method, url), expected, `${method} ${url}`)
})

test('the id of a model may have slashes, and what follows its colon is an action', () => {
  for (const [method, url, expected] of [
    ['GET', '/v1/models/vendor/family/one', 'GET /v1/models/{id} vendor/family/one'],
    ['POST', '/v1/models/vendor/one:generateContent?alt=sse', 'POST /v1/models/{model}:generateContent vendor/one'],
    ['POST', '/v1/models/one%3AgenerateContent', 'POST /v1/models/{model}:generateContent one'],
    ['GET', '/v1/models/one:generateContent', 'GET /v1/models/{id} one:generateContent'],
    ['DELETE', '/v1/models/one:generateContent', 'POST'],
    ['POST', '/v1/models/one:else', 'nothing'],
    ['POST', '/v1/models/:generateContent', 'nothing'],
  ] as const)
    assert.equal(found(method, url), expected, `${method} ${url}`)
  assert.throws(() => router.find('GET', '/v1/models/%zz'), URIError)
})
