// How a reseller's gateway presents itself: name, logo, colours, support address, links and mail sender. Console, mails, documentation and
// invoices read it here. It is kept in memory, and read again when a process changes it.
import { createHash } from 'node:crypto'
import type * as z from 'zod'
import type { Audit, By } from '../database/audit.ts'
import type { Changes } from '../database/changes.ts'
import { type Database, statement } from '../database/database.ts'
import { invalid } from '../kernel/fault.ts'
import { readImageFacts } from '../parsers/image-file.ts'
import { colorProblem, colorTokens, darkVariant } from './color.ts'
import { type BrandingView, brandingInput } from './views.ts'

interface Logo {
  readonly type: 'png' | 'jpeg'
  readonly bytes: Buffer
}

export interface Branding {
  get(): BrandingView
  logo(): Logo | undefined
  /** Style sheet for the console and the documentation; empty where nobody chose a colour. */
  css(): string
  /** Replaces all but the logo. */
  change(input: z.output<typeof brandingInput>, by: By): Promise<BrandingView>
  /** Null removes it. */
  changeLogo(bytes: Buffer | null, by: By): Promise<BrandingView>
}

type Fields = Readonly<Record<string, unknown>>

const READ = statement('branding_read', `select name, value from setting where name in ('branding', 'branding-logo')`)
const PUT = statement(
  'branding_put',
  'insert into setting (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value',
)
const REMOVE = statement('branding_remove', `delete from setting where name = 'branding-logo'`)

/** Every page and mail carries it. */
export const LOGO_BYTES_MAX = 200_000
const LOGO_SIDE_MAX = 2_000

export async function openBranding(options: {
  database: Database
  changes: Pick<Changes, 'watch' | 'bump' | 'notice'>
  audit: Audit
}): Promise<Branding> {
  const { database, changes, audit } = options
  let current = viewOf({}, undefined)
  let logo: Logo | undefined

  async function load(): Promise<void> {
    const rows = await database.query<{ name: string; value: string }>(READ)
    const found = new Map(rows.map(({ name, value }) => [name, value]))
    logo = readLogo(found.get('branding-logo'))
    current = viewOf(JSON.parse(found.get('branding') ?? '{}'), logo)
  }

  async function put(setting: { name: 'branding' | 'branding-logo'; value: string | null }, after: Fields, by: By) {
    const before = Object.fromEntries(Object.entries(current).filter(([name]) => name in after))
    await database.transaction(async (tx) => {
      await (setting.value === null ? tx.query(REMOVE) : tx.query(PUT, [setting.name, setting.value]))
      await changes.bump(tx, 'branding')
      await audit.write(tx, by, { action: 'system.branding', object: 'system', before, after })
    })
    await load()
    await changes.notice('branding')
    return current
  }

  changes.watch('branding', load)
  await load()
  return {
    get: () => current,
    logo: () => logo,
    css() {
      const { color, colorDark } = current
      if (color === null) return ''
      // Twice the root, to win over the tokens in whichever order the two style sheets stand.
      return `:root:root {\n${colorTokens(color, colorDark ?? darkVariant(color))}\n}\n`
    },
    change(input, by) {
      check(input)
      return put({ name: 'branding', value: JSON.stringify(input) }, input, by)
    },
    changeLogo(bytes, by) {
      const name = 'branding-logo'
      if (bytes === null) return put({ name, value: null }, { logo: null }, by)
      const { type, width, height } = checkLogo(bytes)
      const logo = { type, width, height, url: logoUrl(bytes) }
      return put({ name, value: bytes.toString('base64') }, { logo }, by)
    },
  }
}

function check({ color, colorDark }: z.output<typeof brandingInput>): void {
  if (colorDark !== null && color === null) throw invalid('colorDark: is set together with color.', 'colorDark')
  const light = color === null ? undefined : colorProblem(color, 'light')
  if (light) throw invalid(`color: ${light}`, 'color')
  const dark = colorDark === null ? undefined : colorProblem(colorDark, 'dark')
  if (dark) throw invalid(`colorDark: ${dark}`, 'colorDark')
}

/** PNG and JPEG only: every mail program and the PDF library read them, and neither can hold a script as SVG can. */
function checkLogo(bytes: Buffer) {
  if (bytes.length > LOGO_BYTES_MAX)
    throw invalid(`data: the logo may have at most ${LOGO_BYTES_MAX / 1000} kB.`, 'data')
  const facts = readImageFacts([bytes])
  if (facts?.type !== 'png' && facts?.type !== 'jpeg') throw invalid('data: the logo must be a PNG or JPEG.', 'data')
  if (facts.width > LOGO_SIDE_MAX || facts.height > LOGO_SIDE_MAX)
    throw invalid(`data: the logo may be at most ${LOGO_SIDE_MAX} pixels wide and high.`, 'data')
  return { ...facts, type: facts.type }
}

function readLogo(stored: string | undefined): Logo | undefined {
  if (stored === undefined) return undefined
  const bytes = Buffer.from(stored, 'base64')
  return { type: checkLogo(bytes).type, bytes }
}

/** Another file has another address, so that caches do not show the old one. */
function logoUrl(bytes: Buffer): string {
  return `/branding/logo?v=${createHash('sha256').update(bytes).digest('hex').slice(0, 12)}`
}

function viewOf(stored: unknown, logo: Logo | undefined): BrandingView {
  const { type, width, height } = logo ? checkLogo(logo.bytes) : { type: 'png' as const, width: 0, height: 0 }
  return {
    ...brandingInput.parse(stored),
    logo: logo ? { url: logoUrl(logo.bytes), type, width, height } : null,
  }
}
