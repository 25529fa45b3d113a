// Every fault of the list, how it is brought about, and the tests that show what happens. `npm run chaos` runs them with
// their full figures and writes the table of docs/reliability.md.

export interface FaultRow {
  readonly id: string
  readonly fault: string
  readonly done: string
  /** Files whose tests prove it, and a part of each test's name; every test of the file when there is none. */
  readonly shown: ReadonlyArray<readonly [file: string, name?: string]>
}

const leaving = 'test/faults/leaving.test.ts'
const silence = 'test/faults/silence.test.ts'
const broken = 'test/faults/broken.test.ts'
const again = 'test/faults/again.test.ts'
const wire = 'test/hostile-wire.test.ts'
const hostile = 'test/hostile.test.ts'
const database = 'test/chaos/database.test.ts'
const clocks = 'test/chaos/clocks-and-keys.test.ts'
const machine = 'test/chaos/machine.test.ts'
const crash = 'test/crash.test.ts'
const floods = 'test/chaos/floods.test.ts'
const imageBody = 'src/protocols/media/openai-images/body.test.ts'
const guardLimits = 'src/upstream/guard-limits.test.ts'
const slowPaid = 'test/faults/slow-paid.test.ts'
const textStreams = 'test/text-streams.test.ts'
const imageRelay = 'src/protocols/media/openai-images/relay.test.ts'
const signals = 'test/signals.test.ts'
const model = 'test/ledger-model.test.ts'

export const FAULTS: readonly FaultRow[] = [
  {
    id: 'F1',
    fault: 'caller leaves a stream',
    done: 'after each of 200 chunks',
    shown: [
      [leaving, 'any chunk of 200'],
      [leaving, 'has reported its usage'],
      [leaving, 'bills the whole answer'],
    ],
  },
  {
    id: 'F2',
    fault: 'caller leaves a whole answer',
    done: 'at ten points',
    shown: [[leaving, 'leaves a whole answer']],
  },
  {
    id: 'F3',
    fault: 'reset at the last byte',
    done: 'within 5 ms of the end, 1,000 times',
    shown: [[leaving, 'around the last byte']],
  },
  {
    id: 'F4',
    fault: 'vendor says nothing',
    done: 'accepts and is silent',
    shown: [
      [silence, 'says nothing'],
      [silence, 'cannot be connected'],
    ],
  },
  {
    id: 'F5',
    fault: 'vendor stops between chunks',
    done: 'after ten chunks',
    shown: [[silence, 'between two chunks']],
  },
  {
    id: 'F6',
    fault: 'half-open connection',
    done: 'a proxy forwards nothing any more',
    shown: [[silence, 'died without a word']],
  },
  { id: 'F7', fault: 'stream cut mid-line', done: 'at every byte', shown: [[broken, 'cut at any byte']] },
  {
    id: 'F8',
    fault: 'text split across pieces',
    done: 'at every byte, and byte by byte',
    shown: [[broken, 'Chinese and emoji']],
  },
  {
    id: 'F9',
    fault: 'invalid UTF-8',
    done: 'random bytes in 100,000 frames',
    shown: [[broken, 'neither text nor JSON']],
  },
  {
    id: 'F10',
    fault: 'endless event, endless answer',
    done: '64 MB and 200 MB',
    shown: [[broken, 'cut at their caps']],
  },
  {
    id: 'F11',
    fault: 'nonsense usage',
    done: 'a table, and 10,000 random reports',
    shown: [['test/faults/usage.test.ts']],
  },
  {
    id: 'F12',
    fault: 'caller who does not read',
    done: '200 callers, 20 MB each',
    shown: [['test/faults/slow.test.ts']],
  },
  {
    id: 'F13',
    fault: 'headers byte by byte',
    done: '2,000 connections beside good calls',
    shown: [
      [wire, 'never finish their headers'],
      [wire, 'good calls are served'],
    ],
  },
  {
    id: 'F14',
    fault: 'connection flood',
    done: '10,000 connections that say nothing, beside good calls; as many as the machine lets one process open',
    shown: [
      [floods, 'thousands of connections'],
      [wire, 'never finish their headers'],
    ],
  },
  { id: 'F15', fault: 'deep and huge JSON', done: 'depth 20,000, 300,000 members', shown: [[hostile, 'hostile JSON']] },
  {
    id: 'F16',
    fault: 'repeated keys, __proto__',
    done: 'plain, nested and escaped',
    shown: [[hostile, 'hostile JSON']],
  },
  {
    id: 'F17',
    fault: 'numbers that are none',
    done: 'a table for every field that counts',
    shown: [[hostile, 'numbers that are none']],
  },
  {
    id: 'F18',
    fault: 'request smuggling',
    done: '22 probes by raw socket',
    shown: [
      [wire, 'two readers'],
      [wire, 'garbage behind a request'],
    ],
  },
  {
    id: 'F19',
    fault: 'tricks in the query',
    done: 'every parameter of every data endpoint',
    shown: [['test/analytics-contract.test.ts'], ['src/catalog/query.test.ts']],
  },
  {
    id: 'F20',
    fault: 'tricks in the path',
    done: '378 spellings without a key',
    shown: [
      [wire, 'no spelling of a path'],
      [wire, 'absolute targets'],
    ],
  },
  {
    id: 'F21',
    fault: 'large data URIs',
    done: '20 MB and a byte more, 256 MB and a byte more, the 17th picture, blanks in base64; memory below three times the body',
    shown: [
      [imageBody, 'an image of 20 MB passes'],
      [imageBody, '256 MB in all pass'],
      [imageBody, 'the 17th is refused'],
      [imageBody, 'to the letter'],
      ['src/protocols/media/openai-images/memory.test.ts', 'a request of 256 MB'],
      ['test/images.test.ts', 'refused before any hold'],
    ],
  },
  {
    id: 'F22',
    fault: 'bombs and endless bodies behind addresses',
    done: 'endless, encoded, cut short, of too many pixels, one byte too large',
    shown: [
      [guardLimits, 'an endless body is cut'],
      [guardLimits, '20 MB pass and one byte more'],
      [guardLimits, 'what is encoded, cut short'],
      [guardLimits, 'silence is cut'],
    ],
  },
  { id: 'F23', fault: 'huge body without a key', done: 'a gigabyte', shown: [[wire, 'a gigabyte without a key']] },
  { id: 'F24', fault: 'no database at the start', done: 'started before it', shown: [[database, 'away at the start']] },
  { id: 'F25', fault: 'slow database', done: 'round trips of 2 s', shown: [[database, 'a slow database']] },
  {
    id: 'F26',
    fault: 'database away while serving',
    done: 'cut for 30 s under load',
    shown: [[database, 'while the database is away']],
  },
  {
    id: 'F27',
    fault: 'commit unknown',
    done: 'the answer to a commit is lost, over and over',
    shown: [[database, 'whose answer is lost']],
  },
  {
    id: 'F28',
    fault: 'crash between answer and settlement',
    done: 'killed at any moment of the load',
    shown: [
      [crash, 'killed in the middle of load loses'],
      [crash, 'holds of the dead'],
      ['test/simulate.test.ts', 'a hundred seeds'],
    ],
  },
  {
    id: 'F29',
    fault: 'kill -9 under load',
    done: '100 calls at once, 20 rounds; Postgres 10 rounds',
    shown: [[crash, 'killed in the middle of load']],
  },
  {
    id: 'F30',
    fault: 'restart with jobs in every status',
    done: 'killed with jobs in every status, and before and after every single action of a job',
    shown: [
      ['test/video-crash.test.ts', 'killed with jobs in every status'],
      ['src/jobs/job-table.test.ts', 'killed before or after any single action'],
    ],
  },
  {
    id: 'F31',
    fault: 'poison job',
    done: 'one that always fails among a hundred',
    shown: [['src/jobs/engine.test.ts', 'a poison job among a hundred']],
  },
  {
    id: 'F32',
    fault: 'job lost at the vendor',
    done: '404, stuck, and a success after the refund',
    shown: [
      ['src/jobs/engine.test.ts', 'whatever the vendor does'],
      ['src/jobs/engine.test.ts', 'past its deadline'],
    ],
  },
  {
    id: 'F33',
    fault: 'race for the last credit',
    done: '10,000 at once from one and from four processes',
    shown: [
      [model, '10,000 reservations'],
      ['src/ledger/ledger.test.ts', '10,000 reservations'],
    ],
  },
  {
    id: 'F34',
    fault: 'double settlement',
    done: '50 at once of each of 1,000 holds',
    shown: [[model, 'fifty ways to end']],
  },
  {
    id: 'F35',
    fault: 'settle against release against expiry',
    done: 'random interleavings of three processes',
    shown: [[model, 'invariants hold']],
  },
  {
    id: 'F36',
    fault: 'retry after a partial stream',
    done: 'failures before and after the first byte',
    shown: [
      [again, 'before its first byte'],
      [again, 'never begun again'],
    ],
  },
  {
    id: 'F37',
    fault: 'the same Idempotency-Key at once',
    done: '100 in parallel, JSON and streams',
    shown: [[again, 'hundred calls with one']],
  },
  {
    id: 'F38',
    fault: 'key revoked under load',
    done: 'two processes, clocks an hour apart',
    shown: [[clocks, 'revoked under load']],
  },
  {
    id: 'F39',
    fault: 'clock jumps, time zones',
    done: 'an hour and a day, four zones',
    shown: [
      [clocks, 'clock that jumps'],
      [clocks, 'dates are those of UTC'],
    ],
  },
  { id: 'F40', fault: 'disk full', done: 'a file system of 256 MB, filled', shown: [[machine, 'full disk']] },
  {
    id: 'F41',
    fault: 'little memory',
    done: '192 MB of heap, 400 calls at once for a minute; large bodies beyond the bytes in flight',
    shown: [
      [machine, 'little memory'],
      [floods, 'bytes in flight'],
    ],
  },
  {
    id: 'F42',
    fault: 'burst beyond a limit',
    done: 'ten times the limit at two processes',
    shown: [[clocks, 'burst of ten times']],
  },
  {
    id: 'F43',
    fault: 'blocked event loop',
    done: '50 logins a second during load; a pattern that backtracks; 1,000 tries with known and unknown names',
    shown: [
      [floods, 'logins'],
      ['src/identity/password.test.ts', 'takes as long as'],
      [again, 'that is no key'],
    ],
  },
  {
    id: 'F44',
    fault: 'log that nobody reads',
    done: 'a pipe that is full',
    shown: [[machine, 'log that nobody reads']],
  },
  { id: 'F45', fault: 'U+0000 and lone surrogates', done: 'in every kind of text', shown: [[hostile, 'U+0000']] },
  {
    id: 'F46',
    fault: 'vendor redirects, sets cookies',
    done: '301, 302, 307, 308 to a canary',
    shown: [[again, 'redirects of vendors']],
  },
  { id: 'F47', fault: 'SIGTERM under load', done: '200 streams', shown: [[crash, 'asked to stop']] },
  { id: 'F48', fault: 'two gateways on one directory', done: 'started twice', shown: [[crash, 'second gateway']] },
  {
    id: 'F49',
    fault: 'chunk boundaries anywhere',
    done: '10,000 random cuts per pair of doors',
    shown: [
      [textStreams, '10,000 random cuts'],
      [imageRelay, '10,000 random cuts'],
    ],
  },
  {
    id: 'F57',
    fault: 'Ctrl-C and its kin',
    done: 'SIGINT, SIGTERM and SIGHUP, to npm, the launcher and their groups, once and twice, 52 moments of the start each',
    shown: [[signals]],
  },
  { id: 'F62', fault: 'reading slowly until a deadline', done: 'the vendor given 60 s', shown: [[slowPaid]] },
]
