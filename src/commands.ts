// The commands by hand of extensions, which stand in the help below the core's own.
import type { Command } from './cli/command.ts'
import { SIGN_IN_COMMANDS } from './extensions/agents/cli.ts'
import { AGENT_SETUP_COMMAND } from './extensions/agents/setup/cli.ts'
import { TOOL_SERVER_COMMANDS } from './extensions/agents/tools/cli.ts'
import { APPLY_COMMAND } from './extensions/apply/commands.ts'
import { ARCHIVE_COMMAND } from './extensions/archive/cli.ts'
import { CONNECT_COMMAND } from './extensions/connect/commands.ts'
import { DOCTOR_COMMAND } from './extensions/doctor/commands.ts'
import { IMPORT_COMMANDS } from './extensions/importers/commands.ts'
import { MOVE_COMMAND } from './extensions/moving/cli.ts'
import { LEDGER_COMMANDS } from './extensions/moving/ledgers-cli.ts'
import { PSQL_COMMAND } from './extensions/postgres/cli.ts'
import { PRICE_COMMANDS } from './extensions/prices/commands.ts'
import { PRODUCT_COMMANDS } from './extensions/products/cli.ts'
import { CALL_COMMAND } from './extensions/shell/call.ts'
import { COMPLETION_COMMAND } from './extensions/shell/completion.ts'
import { VERIFY_COMMAND } from './extensions/verify/commands.ts'

export const ADDED: Readonly<
  Record<
    'call' | 'calls' | 'accounts' | 'ledger' | 'files' | 'vendors' | 'prices' | 'catalog' | 'diagnosis' | 'shell',
    readonly Command[]
  >
> = {
  call: [CALL_COMMAND],
  calls: [AGENT_SETUP_COMMAND, ...SIGN_IN_COMMANDS],
  accounts: [MOVE_COMMAND],
  ledger: [VERIFY_COMMAND, ARCHIVE_COMMAND],
  files: [APPLY_COMMAND],
  vendors: [CONNECT_COMMAND],
  prices: PRICE_COMMANDS,
  catalog: [...TOOL_SERVER_COMMANDS, ...PRODUCT_COMMANDS, ...IMPORT_COMMANDS],
  diagnosis: [DOCTOR_COMMAND, ...LEDGER_COMMANDS, PSQL_COMMAND],
  shell: [COMPLETION_COMMAND],
}
