// What sends calls to ClickHouse sees of it: inserts, which it takes, refuses, or takes without an answer. It has no
// SQL; a real server is in clickhouse-server.ts.
import { text } from 'node:stream/consumers'
import { listen } from './started.ts'

type Inserted = { readonly day: string; readonly account_id: string; readonly id: string; readonly line: string }

export async function clickHouseLike() {
  /** To the next inserts; then it takes all. */
  const answers: Array<'take' | 'refuse' | 'lose' | 'break'> = []
  const inserted: Inserted[] = []
  const authorized: string[] = []
  const server = await listen(async (request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://clickhouse')
    const body = await text(request)
    const { 'x-clickhouse-user': user, 'x-clickhouse-key': key } = request.headers
    if (user) authorized.splice(0, 3, String(user), String(key), searchParams.get('database') ?? '')
    if (!searchParams.get('query')?.startsWith('insert into ')) return void response.end()
    const answer = answers.shift() ?? 'take'
    if (answer === 'break') return void request.socket.destroy()
    if (answer === 'refuse') {
      response.statusCode = 500
      return void response.end('Code: 241, e.displayText() = DB::Exception: Memory limit exceeded')
    }
    for (const line of body.trimEnd().split('\n')) inserted.push({ ...JSON.parse(line), line })
    if (answer === 'lose') return void request.socket.destroy()
    response.end()
  })
  return {
    ...server,
    answers,
    inserted,
    authorized,
    /** Without those that were replaced by the same key. */
    stored: () => [...new Map(inserted.map((row) => [`${row.day} ${row.account_id} ${row.id}`, row])).values()],
  }
}
