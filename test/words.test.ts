// The field's own words: no page, label or error text uses a word that the glossary replaces. docs/glossary.md has the
// words that stay.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ADVICE, FAULTS } from '../src/kernel/fault.ts'
import { assert, none, test } from './kit.ts'

const ROOT = resolve(import.meta.dirname, '..')
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** Each pattern is a private word, a second word for one thing, or a sentence that has to be decoded. */
const WRONG: readonly (readonly [wrong: RegExp, right: string])[] = [
  [/\bcatalogues?\b/i, 'catalog'],
  [/\be-mails?\b/i, 'email'],
  [/\b(?:\w*colours?|behaviours?|favours?|recognis\w+|analyse[ds]?|organis\w+|normalis\w+)\b/i, 'color, recognize'],
  [/\bproviders?\b/i, 'vendor'],
  [/\bupstreams?\b/i, 'vendor'],
  [/\b(?:front|back) doors?\b|\bdoors\b|\b(?:its|the|this|a|each|every) door\b/i, 'client format, vendor format'],
  [/\bkept (?:answers?|contents?|data)\b/i, 'response cache, content logging'],
  [/\bkeep(?:s|ing)? (?:answers|requests and answers|contents)\b/i, 'response cache, content logging'],
  [/\bkeys of vendors\b|\bvendors['’] (?:keys|credentials)\b/i, 'vendor credentials'],
  [/\brefus(?:e|es|ed|ing|als?)\b/i, 'reject, rejected, rejection'],
  [/\bbook(?:ed|ing)\b|\bthe books\b/i, 'posted, the ledger'],
  [/\bhousekeeping\b|\bupkeep\b/i, 'maintenance'],
  [/\b(?:errands?|neglected|put down|put aside|set aside)\b/i, 'background work, stale, yield, disabled or reserved'],
  [/\bthe (?:story|trail) of\b/i, 'attempt log'],
  [/\b(?:mend(?:s|ed|ing)?|afresh|anew)\b/i, 'fix, again'],
  [/\b(?:vendors?|gateway|models?|servers?|clients?|callers?|sources?|it) speaks?\b/i, 'uses the format'],
  [/\bill\b|\bNone is ill\b/, 'unhealthy'],
  [/\bin earnest\b/i, 'as in production'],
  [/\bat the pace of\b/i, 'at last week’s rate'],
  [/\bhold from now on\b/i, 'apply now'],
  [/\bcause lies with\b/i, 'Cause: …'],
  [
    /\bbefore a vendor (?:was|is|hears|has been) (?:asked|of)\b|\bhears? of (?:a|the|your) call\b/i,
    'before the vendor is called',
  ],
  [/\bfires once\b|\bwhat fired\b|\bmeans nothing\b/i, 'is sent once, alerts, test alert'],
  [/\bNothing of that name\b|\bno JSON object as\b/i, 'No results, is not a JSON object'],
  [/\bUnpriced is never free\b/i, 'Models without a price are not served'],
  [/\bof which [\w-]+ and [\w-]+ make\b/i, 'Tested with …'],
  [/\bown(?:-| )keys?\b/i, 'BYOK key'],
  [/\bdeferred\b/i, 'background work'],
  [/\bRefresh by itself\b/i, 'Auto-refresh'],
  [/\bCSV of (?:calls|sums)\b/i, 'Export calls, Export totals'],
  [/\b(?:and )?times to answer\b/i, 'latency'],
  [/\bcredits short\b/i, 'Not enough credits'],
  [/\bWhat was asked\b|\bAnswer: whole\b/i, 'Request, Response: not streamed'],
  [/\bAs each model says\b|\bat the price of a hit\b/i, 'model default, at the cached price'],
  [/\bSlack or alike\b/i, 'Slack-compatible webhook'],
  [/\bSay who is told\b|\bWhat needs somebody\b/i, 'Set up alert recipients, what the alerts are about'],
  [/\bMultipliers of requests that\b|\bTimes in batches\b/i, 'Service-tier multipliers, Batch multiplier'],
  [/\bNo judgement yet\b|\bNothing heard yet\b/i, 'Results appear here'],
  [/\bWritten down\b|\bWrite down\b/, 'Output language, Transcribe'],
  [/\bWhat moved this account\b/i, 'All credit movements, newest first'],
  [/\bCome from LiteLLM\b|\bvendors that are not there\b/i, 'Migrate from LiteLLM, Sandbox'],
  [/\bunless (?:given|said otherwise|you say otherwise)\b/i, 'by default'],
  [/\bwhoever\b/i, 'people who, callers who, the operator'],
  [/\bdear(?:er|est)\b/i, 'more expensive, most expensive, highest'],
  [/\b(?:passed over|broken off|breaks? it off)\b/i, 'skipped, aborted'],
  [/\bmade out to\b|\bworks? out (?:the|no) tax\b/i, 'billing details, computes the tax'],
]

/** What stays although a pattern finds it, and why. */
const STAYS: readonly (readonly [RegExp, string])[] = [
  [/model providers?|OpenAI-compatible providers?/gi, 'the agents’ own word in their configuration'],
  [/(?:payment|mail) providers?/gi, 'the words of those trades'],
  [/(?:login|OpenID Connect)[ -]providers?/gi, 'the word of OpenID Connect for who vouches for people'],
  [/bring your own key/gi, 'what BYOK stands for'],
  [/Upstream provider error/g, 'the title of code 50000 in the contract'],
  [/connection (?:was |is )?refused/gi, 'the network’s own word (ECONNREFUSED)'],
]

function sentencesWith(text: string): string[] {
  let prose = text
  for (const [stays] of STAYS) prose = prose.replaceAll(stays, '')
  return WRONG.flatMap(([wrong, right]) => {
    const found = wrong.exec(prose)
    if (!found) return []
    const around = prose.slice(Math.max(0, found.index - 40), found.index + found[0].length + 40).replaceAll('\n', ' ')
    return [`"${found[0].trim()}" (better: ${right}) in "…${around}…"`]
  })
}

/** Code and what is written as code are names, which are renamed with the code. */
const proseOf = (page: string) =>
  textOf(page)
    .replaceAll(/```[\s\S]*?```|<!--[\s\S]*?-->/g, '')
    .replaceAll(/`[^`\n]*`/g, '')
    .replaceAll(/\]\([^)\s]*\)/g, ']')

test('README, guides and the pages beside them use the words of the glossary', () => {
  const pages = globSync(['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/guides/*.md'], {
    cwd: ROOT,
  })
  assert.ok(pages.length >= 30)
  assert.deepEqual(
    pages.sort().flatMap((page) => sentencesWith(proseOf(page)).map((found) => `${page}: ${found}`)),
    [],
  )
})

test('error texts and their advice use the words of the glossary', () => {
  const texts = [...Object.values(FAULTS).map(({ text }) => text), ...Object.values(ADVICE)]
  assert.deepEqual(
    texts.flatMap((text) => sentencesWith(text.replaceAll(/`[^`]*`/g, ''))),
    [],
  )
})

test('the help of the command line and the table of errors use the words of the glossary', () => {
  assert.deepEqual(
    ['docs/reference/command-line.md', 'docs/reference/errors.md'].flatMap((page) => sentencesWith(proseOf(page))),
    [],
  )
})

test('no table, column, setting or member has a name that the glossary replaces', () => {
  const schema = textOf('docs/reference/schema.sql')
  const tables = [...schema.matchAll(/^create table (\w+)/gm)].map(([, name = '']) => name)
  const columns = [...schema.matchAll(/^ {2}(\w+) (?:text|jsonb|boolean|bigint|integer|bytea)/gm)].map(
    ([, name = '']) => name,
  )
  assert.ok(tables.length > 30 && columns.length > 200)
  const old =
    /^(?:share|limited|change|process|content|content_rule|own_key|kept_\w+|grant_key|story|keeps?|keeps_\w+)$/
  none([...tables, ...columns], (name) => old.test(name))
})

test('labels and sentences of the console use the words of the glossary', () => {
  const files = globSync('console/src/**/*.{ts,tsx}', { cwd: ROOT, exclude: ['**/*.test.ts'] })
  assert.ok(files.length > 40)
  assert.deepEqual(
    files.sort().flatMap((file) =>
      wordsOnScreen(textOf(file))
        .flatMap(sentencesWith)
        .map((found) => `${file}: ${found}`),
    ),
    [],
  )
})

/**
 * Texts of elements, and strings of at least two words: keys, paths and class names have no blank between words of a
 * sentence.
 */
function wordsOnScreen(source: string): string[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$|\s\/\/ .*$/gm, '')
  const strings = [...code.matchAll(/'([^'\n]*)'|"([^"\n]*)"|`([^`]*)`/g)].map(
    (match) => match[1] ?? match[2] ?? match[3] ?? '',
  )
  const texts = [...code.matchAll(/>([^<>{}=;]+)</g)].map(([, text = '']) => text)
  return [...strings.filter((text) => /^[A-Z“].* |^[A-Z][a-z]+$/.test(text)), ...texts]
}

test('the patterns find what they are for, and nothing else', () => {
  assert.equal(sentencesWith('A call is rejected before the vendor is called.').length, 0)
  assert.equal(sentencesWith('Refused before a vendor was asked.').length, 2)
  assert.equal(wordsOnScreen("<p>None is ill.</p> f('path/to/door')").flatMap(sentencesWith).length, 1)
})
