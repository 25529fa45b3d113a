// `npm run commits`, a part of `npm run check`: the subject of a commit has at most 72 characters, so that logs and lists show all of it.
// Commits from before the rule, and those that a remote already has, cannot change any more and are not looked at.
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'

export const SUBJECT_CHARACTERS_MAX = 72
/** The last commit from before the rule was checked. */
const RULE_SINCE = '56d934681c2830106714c8555ed6453abd8b4eba'

export interface CommitCheck {
  readonly checked: number
  readonly tooLong: readonly string[]
  /** Why nothing could be checked: no git, no repository, no commit, or no known place to begin at. */
  readonly skipped?: string
}

export function checkSubjects(directory: string, since: string = RULE_SINCE): CommitCheck {
  const git = (...words: string[]): string | undefined => {
    const { status, stdout } = spawnSync('git', ['-C', directory, ...words], { encoding: 'utf8' })
    return status === 0 ? stdout.trim() : undefined
  }
  const skip = (skipped: string): CommitCheck => ({ checked: 0, tooLong: [], skipped })
  if (git('rev-parse', '--verify', 'HEAD') === undefined) return skip('this is not a git checkout with commits')
  // A shallow clone, or one with another history, does not have the commit. What the remote has is the place to begin then.
  const begins = git('merge-base', '--is-ancestor', since, 'HEAD') !== undefined
  if (!begins && !git('for-each-ref', 'refs/remotes'))
    return skip('neither the first checked commit nor a remote is here')
  const log = git('log', '--no-merges', '--format=%h %s', 'HEAD', '--not', '--remotes', ...(begins ? [since] : []))
  const lines = (log ?? '').split('\n').filter((line) => line !== '')
  const subjectOf = (line: string) => line.slice(line.indexOf(' ') + 1)
  const tooLong = lines.filter((line) => [...subjectOf(line)].length > SUBJECT_CHARACTERS_MAX)
  return { checked: lines.length, tooLong }
}

if (import.meta.main) {
  const { checked, tooLong, skipped } = checkSubjects(resolve(import.meta.dirname, '..'))
  for (const line of tooLong) console.error(`The subject has more than ${SUBJECT_CHARACTERS_MAX} characters: ${line}`)
  if (tooLong.length > 0)
    console.error('Shorten it (git commit --amend, git rebase -i); the reason belongs in the body.')
  else console.log(skipped ? `Commit subjects were not checked: ${skipped}.` : `Commit subjects: ${checked} checked.`)
  process.exitCode = tooLong.length > 0 ? 1 : 0
}
