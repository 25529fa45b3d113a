// The page behind the link in each alert mail. Programs that scan mails open links, so a GET changes nothing; a POST
// does. Mail programs send one to the link itself when their reader unsubscribes (RFC 8058), with any body and no
// cookie.
import { rawQuery, type WebServer } from '../../api/server/server.ts'
import type { WebAnswer, WebRequest } from '../../api/server/web.ts'
import type { Branding } from '../../identity/branding/branding.ts'
import { Fault } from '../../kernel/fault.ts'
import { escapeHtml } from '../../kernel/html.ts'
import type { Alerts } from './alerts.ts'
import type { Mailbox } from './receivers.ts'

const URL = '/alert-mails'
const BODY_BYTES_MAX = 4_096
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}

interface AlertMailDeps {
  readonly alerts: Pick<Alerts, 'mailbox' | 'answer'>
  readonly branding: Pick<Branding, 'get'>
}

export function mountAlertMails(app: WebServer, { alerts, branding }: AlertMailDeps): void {
  function read(request: WebRequest) {
    const query = new URLSearchParams(rawQuery(request))
    const token = query.get('token') ?? ''
    const mailbox = alerts.mailbox(token)
    if (!mailbox) throw new Fault('not_found', { message: 'This link is not complete. Copy it whole from the mail.' })
    return { token, mailbox, wanted: query.get('wanted') === 'yes' }
  }
  const page = ({ scope, address }: Mailbox, body: string): WebAnswer => {
    const { name } = branding.get()
    const about = `Alerts about ${scope === '' ? 'the gateway' : `the account ${scope}`}, by mail to ${address}.`
    return {
      headers: HEADERS,
      body: `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(name)}: alert mails</title><style>body{font:16px system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}</style>
<h1>${escapeHtml(name)}</h1><p>${escapeHtml(about)}</p>${body}</html>`,
    }
  }
  const button = (token: string, wanted: 'yes' | 'no', label: string) =>
    `<form method="post" action="${URL}?wanted=${wanted}&amp;token=${escapeHtml(encodeURIComponent(token))}"><p><button>${label}</button></p></form>`

  app.get(URL, (request) => {
    const { token, mailbox } = read(request)
    const choices = [button(token, 'yes', 'Receive these alerts'), button(token, 'no', 'Do not send me alerts')]
    return page(mailbox, choices.join(''))
  })
  app.add('POST', URL, async (request) => {
    app.bodyDeadline(request.response)
    const { mailbox, wanted } = read(request)
    await request.body(BODY_BYTES_MAX)
    await alerts.answer(mailbox, wanted)
    return page(mailbox, `<p>${wanted ? 'You will receive them.' : 'You will not receive them any more.'}</p>`)
  })
}
