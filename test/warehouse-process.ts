// Sends calls to ClickHouse, to be killed meanwhile.
import { openDatabase } from '../src/database/database.ts'
import type { EmbeddedConnection } from '../src/extensions/postgres/embedded.ts'
import { openClickHouse } from '../src/extensions/warehouse/clickhouse.ts'
import { createWarehouse } from '../src/extensions/warehouse/warehouse.ts'
import { silentLog } from '../src/kernel/log.ts'
import { realWorld } from '../src/kernel/world.ts'
import { createUpstream } from '../src/upstream/exchange.ts'

type Options = { readonly connection: EmbeddedConnection; readonly url: string; readonly rowsMax: number }

const { connection, url, rowsMax } = JSON.parse(process.argv[2] ?? '') as Options // As the test has written it.
const database = openDatabase({ connection })
const clickhouse = openClickHouse(url, createUpstream({ world: realWorld }))
const warehouse = createWarehouse({ database, clickhouse, world: realWorld, log: silentLog, rowsMax })
for (;;) await warehouse.run()
