// Commands of usage, the ledger, the audit log, deliveries and content logging.
import type { Commands } from '../command.ts'

export const CALL_COMMANDS: Commands = {
  'GET /accounts/{id}/usage': {
    usage: 'usage list <account>',
    columns: 'TIME=at, MODEL=product, KEY=keyName, status, outcome, fault, CREDITS=charged, MS=durationMs, CALL=id',
    about: 'With filters, a range has at most 92 days; without --from it has these.',
    empty: 'No calls match. An account’s first call: tollgate call chat "Hi" --api-key <key>',
  },
  'GET /usage/{requestId}': {
    usage: 'usage show <call>: Shows one call and how its charge was computed.',
    columns:
      'Call=id, Time=at, Account=account, Key=keyName, Model=product, Endpoint=endpoint, Outcome=outcome, Status=status, Cause=message, Credits charged=charged, Credits reserved before the call=held, Cost to the vendor=cost, Vendor=vendor, Credential=credential, Milliseconds=durationMs, Until the first byte=firstByteMs, Streamed=stream, Attempts=attemptLog.attempts.length, Agent=client, Job=job, Content is logged=content, Trace=trace',
    tables: { lines: 'unit, quantity, CREDITS=rate, per, amount' },
  },
  'GET /accounts/{id}/usage/labels': {
    usage: 'usage labels <account> <label>: Spending by end user, session or value of a tag, highest first.',
    columns:
      'value, calls, INPUT=inputTokens, OUTPUT=outputTokens, CREDITS=charged, MODELS=products, FIRST=firstAt, LAST=lastAt',
    about: 'The label is user, session or the name of a tag. Without --from: the last 30 days.',
    empty: 'No calls carry this label in this time.',
  },
  'GET /accounts/{id}/usage-by-client': {
    usage: 'usage clients <account>: Spending by agent session or name, highest first.',
    columns: 'AGENT=client, CALLS=requests, CREDITS=charged, FIRST=firstAt, LAST=lastAt',
    empty: 'No calls of agents yet. Set one up with: tollgate agent-setup <program>',
  },
  'GET /accounts/{id}/ledger': {
    usage: 'ledger show <account>: All credit movements of an account, newest first, with the balance after each.',
    columns: 'TIME=at, kind, CREDITS=moved, loss, BALANCE=balanceAfter, MODEL=product, note, id',
    empty: 'No movements match. Add credits with: tollgate credits add <account> 100',
  },
  'GET /audit': {
    usage: 'audit list: Lists changes, newest first: who, from where, by which token, and what it was before.',
    columns: 'TIME=at, CHANGE=sentence',
    empty: 'No such changes.',
  },
  'GET /audit/verify': {
    usage: 'audit verify: Verifies the hash chain of audit rows, which shows changed or removed rows.',
    about: 'Exits with 1 if the chain is broken.',
  },
  'GET /deliveries': {
    usage: 'deliveries list [account]: Lists webhooks, messages and mails with their status, newest first.',
    columns:
      'DELIVERY=id, TIME=at, ACCOUNT=account|the gateway, event, kind, to, status, attempts, ANSWER=statusCode, error, NEXT=nextAttemptAt',
    about: 'Without an account: those of the gateway and of all accounts.',
    empty: 'No deliveries yet. Receivers are added with: tollgate alerts add <kind> <address>',
  },
  'GET /deliveries/{delivery}':
    'deliveries show <delivery>: Shows one delivery: every attempt, the receiver’s answers, and the message.',
  'POST /deliveries/{delivery}/repeat': {
    usage: 'deliveries repeat <delivery>: Sends a delivery again now, with the same id.',
    about: 'Not possible while it is being sent. Receivers can recognize the repetition by its webhook-id.',
    words: 'On its way. How it goes: tollgate deliveries show {id}',
  },
}
