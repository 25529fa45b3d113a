// An alert as a receiver gets it: a mail, a line for Slack, or JSON.
import { type Mail, renderMail } from '../../identity/branding/mail.ts'
import type { BrandingView } from '../../identity/branding/views.ts'
import type { Message } from '../../jobs/delivery.ts'
import type { AlertFact } from './rules.ts'
import type { AlertView, Receiver } from './views.ts'

type Fired = Omit<AlertFact, 'rank'> & { readonly id: string; readonly at: Date }

export type MailOf = (alert: Fired, to: string) => Mail

export function alertMessage(alert: Fired, { kind, to }: Receiver, index: number, mailOf: MailOf): Message {
  const { id, scope, rule, subject, level, title, message, at } = alert
  const event = `alert.${rule}`
  const about = { id: `msg_${id}-${index}`, account: scope, kind, event, subject: id, to }
  switch (kind) {
    case 'email': {
      const { subject: line, text, html, unsubscribe } = mailOf(alert, to)
      return { ...about, title: line, body: text, html, unsubscribe }
    }
    case 'slack':
      return { ...about, body: JSON.stringify({ text: `*${plain(title)}*\n${plain(message)}` }) }
    case 'webhook': {
      const data = { id, account: scope === '' ? null : scope, rule, subject, level, title, message }
      return { ...about, body: JSON.stringify({ type: event, timestamp: at.toISOString(), data }) }
    }
  }
}

/** Of an account's alerts, whose titles have names and labels that customers or their callers chose. */
const SUBJECTS: Partial<Record<AlertView['rule'], string>> = {
  balance: 'The balance is low',
  limit: 'A spending limit or budget is used up to a share',
  label: 'A value of a label has spent more than its rule',
  failures: 'Many calls fail',
  key: 'A key ends soon',
  job: 'A job failed',
  test: 'A test',
}

/** The gateway's own alerts have names that operators chose. */
export function alertMail(alert: Fired, branding: BrandingView, base: string, unsubscribe: string): Mail {
  const { scope, rule, subject, title, message, at } = alert
  const place = scope === '' ? 'operator' : `a/${encodeURIComponent(scope)}`
  const content = {
    subject: `[${branding.name}] ${scope === '' ? title : (SUBJECTS[rule] ?? 'An alert')}`,
    paragraphs: [title, message].map(unlinked),
    action: { label: 'Open the alerts', url: `${base}/console/${place}/alerts` },
    notes: [unlinked(`${rule} · ${subject} · ${at.toISOString()}`)],
    unsubscribe,
  }
  return renderMail(content, branding, base)
}

/** The one mail to a mailbox that somebody entered, before its owner has agreed. Nothing in it is a customer's text. */
export function confirmationMail(scope: string, branding: BrandingView, base: string, link: string): Mail {
  const about = scope === '' ? 'the gateway' : `the account ${scope}`
  const content = {
    subject: `[${branding.name}] Do you want to receive alerts?`,
    paragraphs: [`Somebody entered this address as a receiver of alerts about ${about} at ${branding.name}.`],
    action: { label: 'Confirm or reject', url: link },
    notes: ['You receive no alerts unless you confirm it. If you do not know what this is, you need not do anything.'],
    unsubscribe: link,
  }
  return renderMail(content, branding, base)
}

/**
 * Mail programs make links of addresses in plain text, so they are written as nobody can follow them:
 * `https[:]//example[.]com`.
 */
function unlinked(text: string): string {
  return text.replaceAll('://', '[:]//').replaceAll(/[.\u3002\uff0e\uff61](?=[\p{L}\p{M}])/gu, '[.]')
}

/**
 * For Slack, which reads `<!channel>` and `<address|text>`, and others, which read `@channel`: a name that a customer
 * chose is text only.
 */
function plain(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return unlinked(escaped).replaceAll('@', '@\u200b')
}
