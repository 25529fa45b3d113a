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
    'One decision per page: the question, the decision, what it costs, and the measured figures. A page describes the current state; outdated decisions are replaced. Laboratory notes are in `bench/notes/`.',
    table(['', 'Decision'], rows),
  )
}
