// The list of decisions, from their titles.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { page, table } from './markdown.ts'

export function decisionsPage(folder: string): string {
  const rows = globSync('[0-9]*.md', { cwd: folder })
    .sort()
    .map((file) => {
      const title = /^# (?:\d+\. )?(.+)$/m.exec(readFileSync(join(folder, file), 'utf8'))?.[1] ?? file
      return [String(Number(file.slice(0, 4))), `[${title}](${file})`]
    })
  return page(
    'Decisions',
    'One decision a file: the question, what we do, what else was considered, and what was measured. A decision that no longer holds gets the status "replaced by N" and stays.',
    table(['', 'Decision'], rows),
  )
}
