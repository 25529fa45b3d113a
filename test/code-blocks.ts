// The code blocks of README, guides and reference, and what is known of each: its language, and why it is not run where
// it is not.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

export const ROOT = resolve(import.meta.dirname, '..')

export interface CodeBlock {
  /** README.md, docs/guides/… */
  readonly page: string
  readonly line: number
  readonly language: string
  /** From the comment above the block, <!-- not run: … -->; empty: it is run. */
  readonly notRun: string
  /** From the comment above the block, <!-- answer: chat -->: the endpoint whose answer it shows. */
  readonly answer: string | undefined
  readonly code: string
}

/** Blocks that a test of their own runs; it is named, and reads them from the page. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'docs/guides/03-typed-clients.md ts': 'test/clients/package.test.ts',
  'docs/guides/03-typed-clients.md py': 'test/clients/python.long.ts',
  'docs/guides/19-vendors.md sh': 'src/extensions/connect/connect.test.ts',
}

export const pages = ['README.md', ...globSync(['docs/guides/*.md', 'docs/reference/*.md'], { cwd: ROOT }).sort()]

export function blocksOf(page: string): CodeBlock[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const blocks = text.matchAll(/^(?:<!-- ([^\n]*) -->\n)?```([^\n]*)\n([\s\S]*?)^```$/gm)
  return [...blocks].map(({ 1: comment = '', 2: info = '', 3: code = '', index }) => {
    const [language = ''] = info.split(' ')
    const file = ELSEWHERE[`${page} ${language}`]
    const runs = file && readFileSync(join(ROOT, file), 'utf8').includes(page.split('/').at(-1) ?? '')
    return {
      page,
      language,
      code,
      line: text.slice(0, index).split('\n').length,
      notRun: /^not run: (.+)$/.exec(comment)?.[1] ?? (runs ? `it is run by ${file}` : ''),
      answer: /^answer: (\S+)$/.exec(comment)?.[1],
    }
  })
}

/**
 * Blocks of one language that are run, those together that go on from one another: one that imports nothing has its
 * names from the one before.
 */
export function programsOf(page: string, languages: readonly string[], begins: RegExp): { at: string; code: string }[] {
  const programs: { at: string; code: string }[] = []
  for (const { language, code, line, notRun } of blocksOf(page)) {
    if (!languages.includes(language) || notRun) continue
    const last = programs.at(-1)
    if (last && !begins.test(code)) last.code += code
    else programs.push({ at: `${page}:${line}`, code })
  }
  return programs
}
