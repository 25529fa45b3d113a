// A program that connects by OAuth, as the official client wants it described, and the document by which one may name
// itself.
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { OAuthClientProvider } from '@modelcontextprotocol/client'
import { runProgram } from '../sdk/cache.ts'

/** A program that remembers what it is given, as they all do. */
export class Program implements OAuthClientProvider {
  readonly redirectUrl: string
  readonly clientMetadata = {
    client_name: 'Lighthouse <b>agent</b>',
    redirect_uris: [] as string[],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  information: Awaited<ReturnType<OAuthClientProvider['clientInformation']>>
  kept: any
  verifier = ''
  asked: URL | undefined
  constructor(callback: string) {
    this.redirectUrl = callback
    this.clientMetadata.redirect_uris.push(callback)
  }
  clientInformation() {
    return this.information
  }
  saveClientInformation(information: any) {
    this.information = information
  }
  tokens() {
    return this.kept
  }
  saveTokens(tokens: any) {
    this.kept = tokens
  }
  redirectToAuthorization(url: URL) {
    this.asked = url
  }
  saveCodeVerifier(verifier: string) {
    this.verifier = verifier
  }
  codeVerifier() {
    return this.verifier
  }
}

/**
 * A document about a program, at an https address with a certificate that this process trusts; undefined where none can
 * be made.
 */
export async function serveDocument() {
  const how = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout - -days 2 -subj /CN=127.0.0.1'
  const made = await runProgram('openssl', [...how.split(' '), '-addext', 'subjectAltName=IP:127.0.0.1'])
  const pem = made.out
  const [cert] = /-----BEGIN CERTIFICATE[\s\S]+END CERTIFICATE-----/.exec(pem) ?? []
  if (made.code !== 0 || !cert) return undefined
  setDefaultCACertificates([...getCACertificates('default'), cert])
  const about = { answer: {} as object }
  const server = createServer({ key: pem, cert }, (request, response) => {
    const [, elsewhere] = /^\/go\?to=(.+)$/.exec(request.url ?? '') ?? []
    if (elsewhere) return response.writeHead(302, { location: decodeURIComponent(elsewhere) }).end()
    response.setHeader('content-type', 'application/json').end(JSON.stringify(about.answer))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(about, { server, host, url: `https://${host}/client.json` })
}
