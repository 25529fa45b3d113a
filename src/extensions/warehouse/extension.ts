import { type CoreParts, defineExtension } from '../../extension.ts'
import { withCommands } from '../../operator/command.ts'
import { resource } from '../../operator/resource.ts'
import { openClickHouse } from './clickhouse.ts'
import { warehouseView } from './views.ts'
import { createWarehouse } from './warehouse.ts'

type Core = Pick<CoreParts, 'config' | 'world' | 'log' | 'database' | 'upstream'>

const SEND_EVERY_MS = 2_000
const NONE = { place: null, sent: 0, waiting: 0, sentAt: null, failures: 0, error: null }

export const warehouse = defineExtension({
  name: 'warehouse',
  open({ config: { TOLLGATE_ANALYTICS_URL: url }, upstream, ...core }: Core) {
    return {
      warehouse:
        url === undefined ? undefined : createWarehouse({ ...core, clickhouse: openClickHouse(url, upstream) }),
    }
  },
  resources: (all) =>
    withCommands(
      [
        resource('GET /warehouse', 'system:read', {
          title: 'Show what the analytics store has',
          answer: warehouseView,
          run: async () => (await all.warehouse?.state()) ?? NONE,
        }),
      ],
      {
        'GET /warehouse': {
          usage: 'warehouse show: Shows what the analytics store has, and how many calls wait to be sent there.',
        },
      },
    ),
  work: ({ warehouse: own }) => (own ? [{ everyMs: SEND_EVERY_MS, run: () => own.run() }] : []),
  calls: ({ warehouse: own }) => own,
  close: async ({ warehouse: own }) => own?.stop(),
})
