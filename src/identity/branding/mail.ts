// The one template of the gateway's mails, as text and as HTML. All that varies is escaped here.
import { escapeHtml } from '../../kernel/html.ts'
import { textOn } from './branding.ts'
import type { BrandingView } from './views.ts'

export interface MailContent {
  readonly subject: string
  readonly paragraphs: readonly string[]
  /** The one thing to do; its address also stands in the text. */
  readonly action?: { readonly label: string; readonly url: string }
  /** Below the button: how long a link works, what to do if it was somebody else. */
  readonly notes?: readonly string[]
  /** Where the receiver ends such mails. Mail programs offer it too (RFC 8058). */
  readonly unsubscribe?: string
}

export interface Mail extends Pick<MailContent, 'unsubscribe'> {
  readonly subject: string
  readonly text: string
  readonly html: string
}

const ACCENT = '#0e6e74'
const LINE_CHARS_MAX = 200

/** `base` is the gateway's public address, without a trailing slash. */
export function renderMail(content: MailContent, branding: BrandingView, base: string): Mail {
  const { name, support, links } = branding
  const help = support === null ? [] : [`Questions? Write to ${support}.`]
  const footer = [...links.map(({ label, url }) => `${label}: ${url}`)]
  const text = [
    ...content.paragraphs,
    ...(content.action ? [`${content.action.label}:\n${content.action.url}`] : []),
    ...(content.notes ?? []),
    ...(content.unsubscribe ? [`Unsubscribe: ${content.unsubscribe}`] : []),
    ...help,
    ['-- ', name, ...footer].join('\n'),
  ].join('\n\n')
  const mail = { subject: oneLine(content.subject), text: `${text}\n`, html: htmlOf(content, branding, base) }
  return content.unsubscribe ? { ...mail, unsubscribe: content.unsubscribe } : mail
}

/** A subject is a header: nothing in it may begin another one. */
function oneLine(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .slice(0, LINE_CHARS_MAX)
    .toWellFormed()
    .trim()
}

const FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"

function htmlOf(content: MailContent, branding: BrandingView, base: string) {
  const { subject, paragraphs, action, notes = [], unsubscribe } = content
  const { name, logo, support, links } = branding
  const accent = branding.color ?? ACCENT
  const p = (html: string, style = 'margin:0 0 16px') => `<p style="${style}">${html}</p>`
  const a = (url: string, label: string, style = `color:${accent}`) =>
    `<a href="${escapeHtml(url)}" style="${style}">${escapeHtml(label)}</a>`
  const soft = 'margin:0 0 8px;color:#55616a;font-size:13px'
  const height = 36
  const mark = logo
    ? `<img src="${escapeHtml(base + logo.url)}" alt="${escapeHtml(name)}" height="${height}" width="${Math.round((logo.width / logo.height) * height)}" style="display:block">`
    : `<strong style="font-size:18px">${escapeHtml(name)}</strong>`
  const button = action
    ? p(
        a(
          action.url,
          action.label,
          `display:inline-block;padding:11px 18px;border-radius:8px;background:${accent};color:${textOn(accent)};text-decoration:none;font-weight:600`,
        ),
        'margin:8px 0 20px',
      ) + p(`${escapeHtml('Or open this address:')}<br>${a(action.url, action.url)}`, `${soft};word-break:break-all`)
    : ''
  const foot = [
    ...(unsubscribe ? [a(unsubscribe, 'Unsubscribe')] : []),
    ...(support === null ? [] : [`Questions? Write to ${a(`mailto:${support}`, support)}.`]),
    ...(links.length === 0 ? [] : [links.map(({ label, url }) => a(url, label)).join(' · ')]),
  ]
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(oneLine(subject))}</title></head>
<body style="margin:0;background:#f3f6f7;color:#1d2930;${FONT};font-size:15px;line-height:1.55">
<div style="max-width:560px;margin:0 auto;padding:28px 16px">
<div style="padding:0 4px 16px">${mark}</div>
<div style="background:#ffffff;border:1px solid #dfe5e8;border-radius:12px;padding:26px 24px">
${paragraphs.map((text) => p(escapeHtml(text).replaceAll('\n', '<br>'))).join('\n')}
${button}
${notes.map((text) => p(escapeHtml(text), soft)).join('\n')}
</div>
${foot.length === 0 ? '' : `<div style="padding:16px 4px">${foot.map((html) => p(html, soft)).join('')}</div>`}
</div>
</body>
</html>
`
}
