// `npm run clients`: writes the code of the clients that follows from the catalog. It is not in the repository; type
// checks and tests write it first.
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pythonClient } from './python.ts'
import { typescriptClient } from './typescript.ts'

const ROOT = resolve(import.meta.dirname, '..', '..')

export async function writeClients(): Promise<void> {
  const files = new Map([['clients/typescript/src/generated.ts', typescriptClient()], ...pythonClient()])
  for (const [path, text] of files) {
    const file = join(ROOT, path)
    // What is current keeps its time.
    if ((await readFile(file, 'utf8').catch(() => undefined)) !== text) await writeFile(file, text)
  }
}

if (import.meta.main) await writeClients()
