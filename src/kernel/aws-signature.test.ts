import { fixtureOf } from '../../test/fixture.ts'
import { assert, test } from '../../test/kit.ts'
import { sha256, signAwsCall } from './aws-signature.ts'

const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
const AT = Date.UTC(2015, 7, 30, 12, 36, 0)

interface Vector {
  readonly call: readonly [method: string, url: string, body?: string]
  readonly service: string
  readonly region?: string
  readonly headers?: Record<string, string>
  readonly sessionToken?: string
  readonly signature: string
}

test('requests to AWS are signed as the published vectors say, and as another implementation signs encoded paths', () => {
  const vectors = fixtureOf<Vector[]>('aws-signatures.yaml')
  for (const { call, service, region = 'us-east-1', headers = {}, sessionToken, signature } of vectors) {
    const [method, url, body = ''] = call
    const sent = { method, url: new URL(url), headers, bodySha256: sha256(body), service }
    const { authorization = '' } = signAwsCall(sent, { ...KEYS, region, sessionToken }, AT)
    assert.equal(authorization.split('Signature=')[1], signature, url)
  }
  const url = new URL('https://example.s3.us-east-1.amazonaws.com/a%20b/c%3Ad?list-type=2&prefix=x%2Fy')
  const unsigned = 'UNSIGNED-PAYLOAD'
  const call = {
    method: 'GET',
    url,
    headers: { 'x-amz-content-sha256': unsigned },
    bodySha256: unsigned,
    service: 's3',
  }
  const { authorization = '' } = signAwsCall(call, { ...KEYS, region: 'us-east-1' }, AT)
  assert.equal(authorization.split('Signature=')[1], '7b2ef6915194ef7e4ee6dbdc582e5e2602d4c37f514e60fdc52b653f6cc2d22b')
})

test('a body in pieces has the digest of the whole', () => {
  assert.equal(sha256('ab', Buffer.from('c')), sha256('abc'))
})
