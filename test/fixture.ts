// Tables of plain data that tests hold the product against stand in test/fixtures.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

export const fixtureText = (name: string): string => readFileSync(new URL(`fixtures/${name}`, import.meta.url), 'utf8')

/** Of a YAML file; whoever asks knows what is in it. */
export const fixtureOf = <T>(name: string): T => parse(fixtureText(name)) as T // As the file has it.
