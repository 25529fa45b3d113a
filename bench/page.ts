// The page in docs/: what the goals say to the results, and a table for each part.
import { coldWords } from './cold.ts'
import { goalsTable, missedList } from './goals.ts'
import {
  type Findings,
  growthTable,
  latencyTable,
  ledgerTable,
  mainTable,
  streamsTable,
  workersTable,
} from './report.ts'

interface Facts {
  readonly machine: string
  readonly date: string
  readonly command: string
  readonly versions: readonly string[]
  readonly loadBefore: number
  readonly notes: readonly string[]
}

export function page(findings: Findings, facts: Facts): string {
  const failed = [...findings.results].flatMap(([id, sides]) =>
    Object.entries(sides)
      .filter(
        ([side, { non200, err }]) => (non200 > 0 && !id.startsWith('refused')) || (err > 0 && side !== 'upstream'),
      )
      .map(([side, { non200, err, n }]) => `${id}, ${side}: ${non200 + err} of ${n} calls were not answered with 200`),
  )
  return `# Performance

Written by \`${facts.command}\` on ${facts.date}; every figure below is from that one run. Tollgate ran in full: key check,
limits, a durable hold before the vendor is called, a durable settlement and a usage row before the last byte, log lines and
metrics, on its embedded Postgres with fsync on. Portkey checks no key and keeps no money; nginx only passes bytes on and is
the practical limit. The floor is the least that a gateway with durable money can be on Node: \`node:http\`, undici and one bare
durable update a call, shared by those who wait, without keys, prices, limits, usage rows, log or figures (\`bench/floor.ts\`).

- Machine: ${facts.machine}; load average before the run: ${facts.loadBefore.toFixed(2)}.
- Versions: ${facts.versions.join(', ')}.
- The gateway under test was pinned to one core; the load generator, the upstream and Postgres to the rest. Loopback,
  keep-alive, gateways in turns, medians of the rounds. CPU is user + system of the gateway's processes, from /proc.
- The upstream is \`bench/mock.c\`, the load generator \`bench/load.c\`.
${facts.notes.map((note) => `- ${note}\n`).join('')}
## Goals

${goalsTable(findings)}
${missedList(findings)}
## Side by side

${mainTable(findings)}

## What a gateway adds to the upstream's time

${latencyTable(findings)}

## Open streams

The delay of a chunk is counted while all streams are open: from when the last was begun until the first ends.

${streamsTable(findings)}

## Growth

The same load (chat, 64 at a time) against a gateway with an empty database and against one that has grown, in turns. Each
row adds to those before it.

${findings.growth.length > 0 ? growthTable(findings) : 'Not measured in this run.'}

## More than one process

Chat, 64 at a time, all cores shared by the gateway, Postgres, the upstream and the load generator: on two cores this shows
what is left for a second process, not what it could do on a core of its own.

${workersTable(findings)}

## A fresh process, and an idle one

${findings.cold ? coldWords(findings.cold) : 'Not measured in this run.'}

## The ledger alone

Hold, settlement and usage row, durable, from one process, without HTTP.

${ledgerTable(findings)}
${failed.length > 0 ? `\n## Calls that failed\n\n${failed.map((line) => `- ${line}`).join('\n')}\n` : ''}
## Stage by stage

Each stage of a chat call alone, with a ledger that answers at once: what is left is the path itself. Least of the rounds, processor time
of the gateway's process with its collector. The last ones are from socket to socket, 64 at a time. A floor is what the parts that are not ours
cost without us: a bare server that reads a body and answers two bytes, undici alone, and a bare proxy of both.

${findings.stages}

What no stage names is the door (8 % of a whole call from socket to socket), the log and the figures (3 %), the collector (4 %) and, in a gateway
with its database, batches and driver (6 %); the rest is the stages themselves, which take two to three times as long between sockets as in a loop
([notes](../bench/notes/call-path.md), "The tenth look").

What made it fast, and what did not help: [decision 12](decisions/0012-performance.md).
`
}
