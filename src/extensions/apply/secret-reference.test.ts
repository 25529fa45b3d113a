// Secrets by reference, from small servers that speak the real formats of Vault, AWS and Google Cloud and refuse what
// those would refuse.
import { createHash, createHmac, generateKeyPairSync, verify } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, assert, listen, temporary, test } from '../../../test/kit.ts'
import { realWorld } from '../../kernel/world.ts'
import { openSecretReferences, referenceProblem } from './secret-reference.ts'

interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}
type Answer = readonly [status: number, body: unknown]

const closers: Array<() => Promise<void>> = []
const folder = temporary('tollgate-secrets-')
after(() => Promise.all(closers.map((close) => close())))

async function serve(answer: (asked: Asked) => Answer): Promise<string> {
  const { url, close } = await listen(async (request, response) => {
    const { method = '', url = '', headers } = request
    const [status, value] = answer({ method, url, headers, body: await text(request) })
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  })
  closers.push(close)
  return url
}

async function using<T>(
  environment: Readonly<Record<string, string>>,
  run: (secrets: ReturnType<typeof openSecretReferences>) => Promise<T>,
): Promise<T> {
  const secrets = openSecretReferences({ world: realWorld, environment: (name) => environment[name] })
  try {
    return await run(secrets)
  } finally {
    await secrets.close()
  }
}

test('the environment and files are read, without the line’s end that editors add', async () => {
  const file = join(folder, 'key')
  await writeFile(file, 'sk-from-a-file\n')
  await using({ A: 'sk-a' }, async (secrets) => {
    assert.equal(await secrets.read('env:A'), 'sk-a')
    assert.equal(await secrets.read(`file:${file}`), 'sk-from-a-file')
    await assert.rejects(secrets.read('env:B'), /env:B: B is not set/)
    await assert.rejects(secrets.read(`file:${folder}/none`), /there is no such file/)
  })
})

test('what is no reference is refused and not repeated', () => {
  const secret = 'sk-live-abcdefgh12345678'
  for (const given of [
    secret,
    `https://${secret}`,
    'env:',
    'env:a b',
    'vault:secret/x',
    'gcp:x',
    'aws:',
    'file:',
    `other:${secret}`,
  ]) {
    const problem = referenceProblem(given)
    assert.ok(problem, given)
    assert.ok(!problem.includes(secret))
  }
  for (const given of ['env:A', 'file:./x', 'vault:kv/a/b#c', 'aws:prod/key#field', 'gcp:projects/p/secrets/s'])
    assert.equal(referenceProblem(given), undefined, given)
})

test('Vault, KV version 2: read by field, written without touching other fields', async () => {
  const kept = new Map<string, Record<string, string>>([
    ['/v1/secret/data/tollgate/vendors', { openai: 'sk-vault', other: 'x' }],
  ])
  const url = await serve(({ method, url: path, headers, body }) => {
    if (headers['x-vault-token'] !== 'hvs.token') return [403, { errors: ['permission denied'] }]
    if (headers['x-vault-namespace'] !== 'team') return [404, { errors: [] }]
    const found = kept.get(path)
    if (method === 'GET')
      return found
        ? [200, { data: { data: found, metadata: { version: 3, destroyed: false } } }]
        : [404, { errors: [] }]
    const { data } = JSON.parse(body) as { data: Record<string, string> }
    if (method === 'PATCH' && headers['content-type'] !== 'application/merge-patch+json') return [415, { errors: [] }]
    if (method === 'PATCH' && !found) return [404, { errors: [] }]
    kept.set(path, method === 'PATCH' ? { ...found, ...data } : data)
    return [200, { data: { version: 4 } }]
  })
  const environment = { VAULT_ADDR: `${url}/`, VAULT_TOKEN: 'hvs.token', VAULT_NAMESPACE: 'team' }
  await using(environment, async (secrets) => {
    assert.equal(await secrets.read('vault:secret/tollgate/vendors#openai'), 'sk-vault')
    await assert.rejects(secrets.read('vault:secret/tollgate/vendors#none'), /there is no such secret/)
    await assert.rejects(secrets.read('vault:secret/none#x'), /Vault answered with status 404/)
    await secrets.write('vault:secret/tollgate/vendors#ci', 'tg_live_1')
    await secrets.write('vault:secret/new#ci', 'tg_live_2')
  })
  assert.deepEqual(kept.get('/v1/secret/data/tollgate/vendors'), { openai: 'sk-vault', other: 'x', ci: 'tg_live_1' })
  assert.deepEqual(kept.get('/v1/secret/data/new'), { ci: 'tg_live_2' })
  await using({ ...environment, VAULT_TOKEN: 'wrong' }, (secrets) =>
    assert.rejects(secrets.read('vault:secret/tollgate/vendors#openai'), /status 403/),
  )
})

const AWS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }

/** As AWS does it: from the request as it came. */
function isSignedForAws({ method, url, headers, body }: Asked): boolean {
  const [, id, day, region, service, names = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8})\/([\w-]+)\/(\w+)\/aws4_request, SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    ) ?? []
  const needed = ['content-type', 'host', 'x-amz-date', 'x-amz-security-token', 'x-amz-target']
  if (id !== AWS.accessKeyId || service !== 'secretsmanager' || names !== needed.join(';')) return false
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  const lines = needed.map((name) => `${name}:${String(headers[name])}`)
  const canonical = [method, url, '', ...lines, '', names, hash(body)].join('\n')
  const text = `AWS4-HMAC-SHA256\n${String(headers['x-amz-date'])}\n${day}/${region}/secretsmanager/aws4_request\n${hash(canonical)}`
  const key = [day ?? '', region ?? '', 'secretsmanager', 'aws4_request'].reduce<string | Buffer>(
    mac,
    `AWS4${AWS.secretAccessKey}`,
  )
  return mac(key, text).toString('hex') === signature
}

test('AWS Secrets Manager: signed requests, a field of JSON, written and created', async () => {
  const kept = new Map<string, string>([['prod/vendors', JSON.stringify({ openai: 'sk-aws' })]])
  const url = await serve((asked) => {
    if (!isSignedForAws(asked) || asked.headers['x-amz-security-token'] !== 'session')
      return [
        400,
        { __type: 'InvalidSignatureException', message: 'The request signature we calculated does not match' },
      ]
    const body = JSON.parse(asked.body) as { SecretId?: string; Name?: string; SecretString?: string }
    const name = body.SecretId ?? body.Name ?? ''
    const action = asked.headers['x-amz-target']
    const isMissing = !kept.has(name) && action !== 'secretsmanager.CreateSecret'
    if (isMissing) return [400, { __type: 'com.amazonaws.secretsmanager#ResourceNotFoundException' }]
    if (action === 'secretsmanager.GetSecretValue') return [200, { Name: name, SecretString: kept.get(name) }]
    kept.set(name, body.SecretString ?? '')
    return [200, { Name: name }]
  })
  const environment = {
    AWS_ACCESS_KEY_ID: AWS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: AWS.secretAccessKey,
    AWS_SESSION_TOKEN: 'session',
    AWS_REGION: 'eu-central-1',
    AWS_ENDPOINT_URL_SECRETS_MANAGER: url,
  }
  await using(environment, async (secrets) => {
    assert.equal(await secrets.read('aws:prod/vendors#openai'), 'sk-aws')
    await assert.rejects(secrets.read('aws:none'), /ResourceNotFoundException/)
    await secrets.write('aws:ci/key', 'tg_live_1')
    await secrets.write('aws:ci/key', 'tg_live_2')
  })
  assert.equal(kept.get('ci/key'), 'tg_live_2')
  await using({ ...environment, AWS_SECRET_ACCESS_KEY: 'another' }, (secrets) =>
    assert.rejects(secrets.read('aws:prod/vendors'), /status 400 \(InvalidSignatureException\)/),
  )
})

test('Google Secret Manager: by a service account and by the metadata server', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const added: string[] = []
  let url = ''
  url = await serve(({ method, url: path, headers, body }) => {
    if (path === '/token') {
      const assertion = new URLSearchParams(body).get('assertion') ?? ''
      const [head = '', claims = '', signature = ''] = assertion.split('.')
      const isGood = verify('sha256', Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(signature, 'base64url'))
      const { iss, aud, scope } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, string>
      const isRight =
        iss === 'ci@p.iam.gserviceaccount.com' && aud === `${url}/token` && scope?.endsWith('/cloud-platform')
      return isGood && isRight
        ? [200, { access_token: 'ya29.account', expires_in: 3600 }]
        : [400, { error: 'invalid_grant' }]
    }
    if (path.startsWith('/computeMetadata/'))
      return headers['metadata-flavor'] === 'Google' ? [200, { access_token: 'ya29.machine' }] : [403, {}]
    if (!headers.authorization?.startsWith('Bearer ya29.')) return [401, { error: { status: 'UNAUTHENTICATED' } }]
    const data = Buffer.from(headers.authorization.slice(7)).toString('base64')
    if (method === 'GET' && path === '/v1/projects/p/secrets/s/versions/latest:access')
      return [200, { payload: { data } }]
    if (method === 'POST' && path === '/v1/projects/p/secrets/s:addVersion') {
      added.push(Buffer.from((JSON.parse(body) as { payload: { data: string } }).payload.data, 'base64').toString())
      return [200, { name: 'projects/p/secrets/s/versions/2' }]
    }
    return [404, { error: { status: 'NOT_FOUND' } }]
  })
  const file = join(folder, 'account.json')
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' })
  await writeFile(
    file,
    JSON.stringify({
      type: 'service_account',
      client_email: 'ci@p.iam.gserviceaccount.com',
      private_key: key,
      token_uri: `${url}/token`,
    }),
  )
  const place = { CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER: `${url}/` }
  await using({ ...place, GOOGLE_APPLICATION_CREDENTIALS: file }, async (secrets) => {
    assert.equal(await secrets.read('gcp:projects/p/secrets/s'), 'ya29.account')
    await assert.rejects(secrets.read('gcp:projects/p/secrets/none'), /status 404 \(NOT_FOUND\)/)
    await secrets.write('gcp:projects/p/secrets/s', 'tg_live_1')
  })
  assert.deepEqual(added, ['tg_live_1'])
  const host = url.replace('http://', '')
  await using({ ...place, GCE_METADATA_HOST: host }, async (secrets) =>
    assert.equal(await secrets.read('gcp:projects/p/secrets/s'), 'ya29.machine'),
  )
})
