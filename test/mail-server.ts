// A real SMTP server that keeps what arrives, read as a mail program reads it.
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import type { Queryable } from '../src/database/database.ts'
import { atLeast, until } from './until.ts'

export interface ReceivedMail {
  /** As the sending server named it, whatever the headers say. */
  readonly to: readonly string[]
  readonly raw: string
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
  readonly html: string
  /** The token of the link in it. */
  readonly token: string
}

export interface MailServer {
  readonly url: string
  readonly mails: ReceivedMail[]
  /** Waits for the newest mail to this address, at least the `count`th. */
  newest(to: string, count?: number): Promise<ReceivedMail>
  to(address: string): ReceivedMail[]
  close(): Promise<void>
}

export async function startMailServer(): Promise<MailServer> {
  const mails: ReceivedMail[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, session, done) {
      const pieces: Buffer[] = []
      stream.on('data', (piece: Buffer) => pieces.push(piece))
      stream.on('end', () => {
        const to = session.envelope.rcptTo.map(({ address }) => address)
        mails.push(read(Buffer.concat(pieces).toString('utf8'), to))
        done()
      })
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.server.address() as AddressInfo
  const to = (address: string) => mails.filter((mail) => mail.to.includes(address))
  return {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    to,
    async newest(address, count = 1) {
      await until(() => to(address).length, atLeast(count))
      return to(address).at(-1)!
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** A member of the account whose mailbox is proved, and so receives its alerts without being asked. */
export async function addMember(on: Queryable, account: string, email: string): Promise<void> {
  await on.query(
    {
      text: `with p as (insert into person (id, email, email_verified_at) values ('per_' || md5($2), $2, now()) on conflict (email) do update set email = excluded.email returning id)
        insert into membership (account_id, person_id, role) select $1, id, 'viewer' from p`,
    },
    [account, email],
  )
}

function split(part: string): { headers: Map<string, string>; body: string } {
  const end = part.indexOf('\r\n\r\n')
  const lines = part.slice(0, end).replaceAll(/\r\n[ \t]+/g, ' ')
  const headers = new Map(
    lines.split('\r\n').map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    }),
  )
  return { headers, body: part.slice(end + 4) }
}

function decoded(headers: ReadonlyMap<string, string>, body: string): string {
  const coding = headers.get('content-transfer-encoding') ?? '7bit'
  if (coding === 'base64') return Buffer.from(body, 'base64').toString('utf8')
  if (coding !== 'quoted-printable') return body
  const bytes = body
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

function read(raw: string, to: readonly string[]): ReceivedMail {
  const { headers, body } = split(raw)
  const boundary = /boundary="([^"]+)"/.exec(headers.get('content-type') ?? '')?.[1]
  const parts = boundary
    ? body
        .split(`--${boundary}`)
        .slice(1, -1)
        .map((part) => split(part.trimStart()))
    : [{ headers, body }]
  const of = (type: string) => {
    const found = parts.find((part) => part.headers.get('content-type')?.startsWith(type))
    return found ? decoded(found.headers, found.body) : ''
  }
  const text = of('text/plain')
  return { to, raw, headers, text, html: of('text/html'), token: /#token=([\w-]+)/.exec(text)?.[1] ?? '' }
}
