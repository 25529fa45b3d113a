// A catalog document as a file: what is wrong with it is said in a sentence.
import { readFile } from 'node:fs/promises'

export async function readDocumentFile(file: string): Promise<unknown> {
  const content = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${file} cannot be read: ${error.code === 'ENOENT' ? 'there is no such file' : error.message}.`)
  })
  return parseDocument(file, content)
}

export function parseDocument(file: string, content: string): unknown {
  try {
    return JSON.parse(content)
  } catch (error) {
    throw new Error(`${file} is not JSON: ${(error as Error).message}`)
  }
}
