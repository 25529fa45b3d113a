// The check of commit subjects, over real repositories.
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkSubjects, SUBJECT_CHARACTERS_MAX } from './commits.ts'
import { assert, test } from './kit.ts'

const LONG = `x ${'x'.repeat(SUBJECT_CHARACTERS_MAX - 1)}`
const withoutGit = spawnSync('git', ['--version']).status === 0 ? false : 'there is no git on this machine'

function git(directory: string, ...words: string[]): string {
  const { status, stdout, stderr } = spawnSync(
    'git',
    ['-C', directory, '-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'commit.gpgsign=false', ...words],
    { encoding: 'utf8' },
  )
  assert.equal(status, 0, stderr)
  return stdout.trim()
}
const commit = (directory: string, subject: string) => {
  git(directory, 'commit', '--allow-empty', '-q', '-m', `${subject}\n\n${LONG} in the body is fine`)
  return git(directory, 'rev-parse', 'HEAD')
}

test('a long subject is named, unless it is older than the rule or already on a remote', {
  skip: withoutGit,
}, async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tollgate-commits-'))
  t.after(() => rm(root, { recursive: true, force: true }))
  const origin = join(root, 'origin')
  git(root, 'init', '-q', origin)
  const old = commit(origin, LONG)
  assert.deepEqual(checkSubjects(origin, old), { checked: 0, tooLong: [], tooShort: [] })
  commit(origin, `ü ${'ü'.repeat(SUBJECT_CHARACTERS_MAX - 2)}`)
  assert.deepEqual(checkSubjects(origin, old), { checked: 1, tooLong: [], tooShort: [] })
  commit(origin, LONG)
  assert.match(checkSubjects(origin, old).tooLong.join(), new RegExp(` ${LONG}$`))

  const shallow = join(root, 'shallow')
  git(root, 'clone', '-q', '--depth', '1', pathToFileURL(origin).href, shallow)
  assert.deepEqual(checkSubjects(shallow, old), { checked: 0, tooLong: [], tooShort: [] })
  commit(shallow, LONG)
  assert.equal(checkSubjects(shallow, old).tooLong.length, 1)
})

test('a subject that says nothing is named, unless it was written before the rule', { skip: withoutGit }, async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tollgate-commits-'))
  t.after(() => rm(root, { recursive: true, force: true }))
  git(root, 'init', '-q')
  const old = commit(root, 'Begin here')
  const at = (date: string, subject: string) =>
    git(root, 'commit', '--allow-empty', '-q', '-m', subject, '--date', date)
  for (const subject of ['x', 'Mendings', 'a b c', 'Mend keys']) at('2026-11-19T00:00:00Z', subject)
  at('2026-11-17T23:17:38Z', 'y')
  const { tooShort } = checkSubjects(root, old)
  assert.deepEqual(
    tooShort.map((line) => line.replace(/^\w+ /, '')),
    ['a b c', 'Mendings', 'x'],
  )
})

test('without a repository, commits or a place to begin at, nothing is checked and the reason is said', {
  skip: withoutGit,
}, async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tollgate-commits-'))
  t.after(() => rm(root, { recursive: true, force: true }))
  assert.ok(checkSubjects(root).skipped)
  git(root, 'init', '-q')
  assert.ok(checkSubjects(root).skipped)
  commit(root, LONG)
  assert.ok(checkSubjects(root).skipped)
})
