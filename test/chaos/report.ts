// docs/reliability.md: each command writes its own part and leaves the others alone.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'reliability.md')

export async function writePart(name: string, text: string): Promise<void> {
  const page = await readFile(PAGE, 'utf8')
  const open = `<!-- ${name} -->`
  const close = `<!-- /${name} -->`
  const from = page.indexOf(open)
  const to = page.indexOf(close)
  if (from < 0 || to < from) throw new Error(`docs/reliability.md has no part ${name}.`)
  await writeFile(PAGE, `${page.slice(0, from + open.length)}\n${text.trim()}\n${page.slice(to)}`)
}

export function today(): string {
  return new Date().toISOString().slice(0, 10)
}
