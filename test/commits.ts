// `npm run commits`, a part of `npm run check`: the subject of a commit has at most 72 characters, so that logs and
// lists show all of it, and says something. Commits from before the rule, and those that a remote already has, cannot
// change any more and are not looked at.
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'

export const SUBJECT_CHARACTERS_MAX = 72
/** Less than two words, or than these characters, tells nobody what was done. */
const SUBJECT_CHARACTERS_MIN = 8
/** Since when that is checked, by the time of writing, which stays when a commit is reworded: 2026-11-18 00:20 UTC. */
const SAYS_SINCE_SECONDS = 1_794_961_200
/** The last commit from before the rule was checked. */
const RULE_SINCE = '56d934681c2830106714c8555ed6453abd8b4eba'

export interface CommitCheck {
  readonly checked: number
  readonly tooLong: readonly string[]
  readonly tooShort: readonly string[]
  /** Why nothing could be checked: no git, no repository, no commit, or no known place to begin at. */
  readonly skipped?: string
}

export function checkSubjects(directory: string, since: string = RULE_SINCE): CommitCheck {
  const git = (...words: string[]): string | undefined => {
    const { status, stdout } = spawnSync('git', ['-C', directory, ...words], { encoding: 'utf8' })
    return status === 0 ? stdout.trim() : undefined
  }
  const skip = (skipped: string): CommitCheck => ({ checked: 0, tooLong: [], tooShort: [], skipped })
  if (git('rev-parse', '--verify', 'HEAD') === undefined) return skip('this is not a git checkout with commits')
  // A shallow clone, or one with another history, does not have the commit. What the remote has is the place to begin
  // then.
  const begins = git('merge-base', '--is-ancestor', since, 'HEAD') !== undefined
  if (!begins && !git('for-each-ref', 'refs/remotes'))
    return skip('neither the first checked commit nor a remote is here')
  const log = git('log', '--no-merges', '--format=%at %h %s', 'HEAD', '--not', '--remotes', ...(begins ? [since] : []))
  const lines = (log ?? '').split('\n').filter((line) => line !== '')
  const commits = lines.map((line) => {
    const [at = '', name = '', ...words] = line.split(' ')
    const subject = words.join(' ')
    return { at: Number(at), line: `${name} ${subject}`, words: words.length, characters: [...subject].length }
  })
  const tooLong = commits.filter(({ characters }) => characters > SUBJECT_CHARACTERS_MAX)
  const tooShort = commits.filter(
    ({ at, words, characters }) => at > SAYS_SINCE_SECONDS && (words < 2 || characters < SUBJECT_CHARACTERS_MIN),
  )
  const shown = (some: typeof commits) => some.map(({ line }) => line)
  return { checked: lines.length, tooLong: shown(tooLong), tooShort: shown(tooShort) }
}

if (import.meta.main) {
  const { checked, tooLong, tooShort, skipped } = checkSubjects(resolve(import.meta.dirname, '..'))
  for (const line of tooLong) console.error(`The subject has more than ${SUBJECT_CHARACTERS_MAX} characters: ${line}`)
  for (const line of tooShort)
    console.error(`The subject has fewer than two words or ${SUBJECT_CHARACTERS_MIN} characters: ${line}`)
  const isBad = tooLong.length + tooShort.length > 0
  if (isBad) console.error('Reword it (git commit --amend, git rebase -i); the reason belongs in the body.')
  else console.log(skipped ? `Commit subjects were not checked: ${skipped}.` : `Commit subjects: ${checked} checked.`)
  process.exitCode = isBad ? 1 : 0
}
