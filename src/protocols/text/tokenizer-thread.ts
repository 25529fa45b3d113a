// The thread that counts tokens.
import { parentPort } from 'node:worker_threads'

interface Asked {
  readonly id: number
  /** The package's module. */
  readonly encoding: string
  readonly texts: readonly string[]
}

parentPort?.on('message', async ({ id, encoding, texts }: Asked) => {
  const { countTokens }: { countTokens(text: string, options: { disallowedSpecial: ReadonlySet<string> }): number } =
    await import(encoding)
  // A caller's text has no special tokens, whatever it looks like.
  const counts = texts.map((text) => countTokens(text, { disallowedSpecial: new Set() }))
  parentPort?.postMessage({ id, counts })
})
