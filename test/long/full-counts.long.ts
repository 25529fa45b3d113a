// The files of `npm test` that try something many times, or with programs that have to be installed, as they do with TOLLGATE_TEST_FULL=1.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { test } from 'node:test'

const ROOT = resolve(import.meta.dirname, '..', '..')
const FILES = [
  'src/admission/budgets.test.ts',
  'src/guardrails/streams.test.ts',
  'src/invoices/invoices.test.ts',
  'src/kernel/json.test.ts',
  'src/postgres/embedded.test.ts',
  'src/protocols/media/openai-images/relay.test.ts',
  'src/protocols/text/text.test.ts',
  'src/verify/verify.test.ts',
  'test/browser/nothing-to-paid.test.ts',
  'test/exports.test.ts',
  'test/clients/package.test.ts',
  'test/contract-document.test.ts',
  'test/hasty-clients.test.ts',
  'test/fuzz.test.ts',
  'test/ledger-model.test.ts',
  'test/lots-model.test.ts',
  'test/mcp/parity.test.ts',
  'test/mcp/sessions.test.ts',
  'test/payment-swarm.test.ts',
  'test/plan-payments.test.ts',
  'test/simulate.test.ts',
  'test/text-streams.test.ts',
]

for (const file of FILES)
  test(`${file} passes in full`, async () => {
    const env = { ...process.env, TOLLGATE_TEST_FULL: '1' }
    // Else it would report to the runner of this file.
    delete (env as NodeJS.ProcessEnv).NODE_TEST_CONTEXT
    const child = spawn(process.execPath, ['--test', file], { cwd: ROOT, env, stdio: 'inherit' })
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })
