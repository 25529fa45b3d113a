// Rules that check calls before and after, and content logging.
import type { Changes } from '../../database/changes.ts'
import { defineExtension } from '../../extension.ts'
import { withCommands } from '../../operator/command.ts'
import type { Statements } from '../../reports/statement.ts'
import { createGuardrails } from './chain.ts'
import { CONTENT_COMMANDS } from './commands.ts'
import { createHooks, type HookDeps } from './hook.ts'
import { createRecordingPolicies, createRecordings, type RecordingDeps } from './recordings.ts'
import { contentResources, guardrailResources } from './resources.ts'
import { guardrailSection } from './rules.ts'

interface Core extends HookDeps, Omit<RecordingDeps, 'guardrails'> {
  readonly changes: Changes
  readonly statements: Statements
}

const MAINTAIN_EVERY_MS = 3_600_000

export const guardrails = defineExtension({
  name: 'guardrails',
  catalog: guardrailSection,
  open(core: Core) {
    const rules = createGuardrails({ secrets: core.secrets, hooks: createHooks(core) })
    const contents = createRecordings({ ...core, guardrails: rules })
    return { rules, contents, contentRules: createRecordingPolicies(core) }
  },
  resources: (all) => withCommands([...contentResources(all), ...guardrailResources()], CONTENT_COMMANDS),
  path: ({ rules, contents, contentRules: { ofAccount } }) => ({
    guardrails: rules,
    contents: {
      begin: contents.begin,
      has: contents.has,
      ofAccount,
      get dropped() {
        return contents.dropped
      },
    },
  }),
  work: ({ contents }) => [{ everyMs: MAINTAIN_EVERY_MS, run: () => contents.prune() }],
  close: ({ contents }) => contents.close(),
})
