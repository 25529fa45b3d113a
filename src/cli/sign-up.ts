// Sign-up and branding on the command line.
import { readFile } from 'node:fs/promises'
import type { BrandingView } from '../branding/views.ts'
import type { LinkView, SignUpInvite, SignUpSettings } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'
import { at, CliError, type Command, type Invocation, takes, text, told } from './command.ts'
import { card, list } from './table.ts'

const MODES = ['off', 'invitation', 'domain', 'open'] as const

function showSettings(settings: SignUpSettings): string {
  const { mode, domains, blockedDomains, credits, limits, terms, perNetworkPerHour, perDomainPerDay } = settings
  return card({
    'Sign-up': mode,
    Domains: domains.join(', ') || undefined,
    'Blocked domains': blockedDomains.length,
    'Starting credits': credits,
    Limits: Object.entries(limits)
      .map(([name, value]) => `${name} ${value}`)
      .join(', '),
    Terms: terms ? `${terms.version} ${terms.url}` : undefined,
    'Mails per network and hour': perNetworkPerHour,
    'Mails per domain and day': perDomainPerDay,
  })
}

function showBranding({ name, color, colorDark, support, links, sender, logo }: BrandingView): string {
  return card({
    Name: name,
    Colour: color,
    'Colour on dark pages': colorDark,
    Support: support,
    Links: links.map(({ label, url }) => `${label} ${url}`).join(', '),
    'Mail sender': sender ? `${sender.name} <${sender.address}>` : undefined,
    Logo: logo ? `${logo.type}, ${logo.width} × ${logo.height}` : undefined,
  })
}

/** A list of words from an option: `a,b`, `@file` or `none`. */
async function words(call: Invocation, name: string): Promise<string[] | undefined> {
  const given = text(call, name)
  if (given === undefined) return undefined
  if (given === 'none') return []
  const whole = given.startsWith('@') ? await readFile(given.slice(1), 'utf8') : given
  return whole.split(/[\s,]+/).filter(Boolean)
}

const orNull = (given: string | undefined) => (given === 'none' ? null : given)
const changed = (fields: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
const nothing = (command: string) => new CliError(`Nothing to change was named. See: tollgate ${command} --help`, 2)

async function changeSettings(call: Invocation) {
  const before = await call.api.call<SignUpSettings>('GET', '/sign-up')
  const [version, url] = [text(call, 'terms-version'), text(call, 'terms-url')]
  const [perNetwork, perDomain] = [text(call, 'per-network'), text(call, 'per-domain')]
  const terms =
    version === 'none'
      ? null
      : version === undefined && url === undefined
        ? undefined
        : { version: version ?? before.terms?.version, url: url ?? before.terms?.url }
  const fields = changed({
    mode: text(call, 'mode'),
    domains: await words(call, 'domains'),
    blockedDomains: await words(call, 'blocked'),
    credits: text(call, 'credits'),
    terms,
    perNetworkPerHour: perNetwork && Number(perNetwork),
    perDomainPerDay: perDomain && Number(perDomain),
  })
  if (Object.keys(fields).length === 0) throw nothing('sign-up change')
  return told(call.api.call<SignUpSettings>('PUT', '/sign-up', { ...before, ...fields }), showSettings)
}

async function changeBranding(call: Invocation) {
  const { logo: _, ...before } = await call.api.call<BrandingView>('GET', '/branding')
  const [senderName, sender] = [text(call, 'sender-name'), text(call, 'sender')]
  const fields = changed({
    name: text(call, 'name'),
    color: orNull(text(call, 'color')),
    colorDark: orNull(text(call, 'color-dark')),
    support: orNull(text(call, 'support')),
    sender:
      sender === 'none'
        ? null
        : sender === undefined
          ? undefined
          : { name: senderName ?? before.sender?.name ?? text(call, 'name') ?? before.name, address: sender },
  })
  const logo = text(call, 'logo')
  if (Object.keys(fields).length === 0 && logo === undefined) throw nothing('branding change')
  if (Object.keys(fields).length > 0) await call.api.call('PUT', '/branding', { ...before, ...fields })
  if (logo === 'none') await call.api.call('DELETE', '/branding/logo')
  else if (logo !== undefined)
    await call.api.call('PUT', '/branding/logo', { data: (await readFile(logo)).toString('base64') })
  return told(call.api.call<BrandingView>('GET', '/branding'), showBranding)
}

export const SIGN_UP_COMMANDS: readonly Command[] = [
  {
    name: 'sign-up show',
    summary: 'Shows who may sign up, and the credits and limits of new accounts.',
    run: (call) => told(call.api.call<SignUpSettings>('GET', '/sign-up'), showSettings),
  },
  {
    name: 'sign-up change',
    summary: 'Sets who may sign up, and the credits and terms of new accounts.',
    options: {
      mode: takes('word', 'off, invitation, domain or open.', { allowed: MODES }),
      domains: takes('names', 'For "domain": a,b or @file; subdomains are included.'),
      blocked: takes('names', 'Blocked mail domains: a,b or @file; "none" removes them.'),
      credits: takes('amount', 'Starting credits, once for each mailbox.'),
      'terms-version': takes('text', 'What people accept; "none" removes the terms.'),
      'terms-url': takes('address', 'Where the terms are.'),
      'per-network': takes('count', 'Mails that one network may ask for in an hour.'),
      'per-domain': takes('count', 'Mails that may be asked for at one domain in a day.'),
    },
    run: changeSettings,
  },
  {
    name: 'sign-up invite',
    summary: 'Invites somebody to open an account, and prints the link.',
    args: ['email'],
    run: (call) =>
      told(call.api.call<LinkView>('POST', '/sign-up/invites', { email: call.args[0] }), ({ link }) => link),
  },
  {
    name: 'sign-up invites',
    summary: 'Lists invitations that have not been used yet.',
    async run(call) {
      const answer = await call.api.call<Page<SignUpInvite>>('GET', '/sign-up/invites')
      const columns = { ID: 'id', EMAIL: 'email', ENDS: 'expiresAt' } as const
      return { ...list(answer.items, columns, 'There are no pending invitations.'), answer }
    },
  },
  {
    name: 'sign-up withdraw',
    summary: 'Withdraws an invitation.',
    args: ['id'],
    run: (call) =>
      told(call.api.call('DELETE', at`/sign-up/invites/${call.args[0]}`), () => 'The link does not work any more.'),
  },
  {
    name: 'branding show',
    summary: 'Shows the name, logo, colours, support address and mail sender.',
    run: (call) => told(call.api.call<BrandingView>('GET', '/branding'), showBranding),
  },
  {
    name: 'branding change',
    summary: 'Sets the name, logo, colours, support address and mail sender.',
    about: 'Links are set in the console or with the operator API.',
    options: {
      name: takes('text', 'What the product is called.'),
      color: takes('hex', 'Of buttons and links, such as #7a1fa2; "none" is our own.'),
      'color-dark': takes('hex', 'The same on dark pages; "none" makes it from the colour.'),
      support: takes('email', 'Where customers get help; "none" removes it.'),
      sender: takes('email', 'The sender of mails; "none" is TOLLGATE_MAIL_FROM.'),
      'sender-name': takes('text', 'The name of the sender.'),
      logo: takes('file', 'A PNG or JPEG; "none" removes it.'),
    },
    run: changeBranding,
  },
]
