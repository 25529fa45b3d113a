// Commands of vendors, their credentials and versions of the catalog.
import type { Commands } from '../command.ts'

const CREDENTIALS =
  'CREDENTIAL=name, ENDS=…{last4}, FROM=source, weight, DISABLED UNTIL=disabledUntil, REASON={disabledReason} {status}, LAST SUCCESS=lastSuccessAt'

export const VENDOR_COMMANDS: Commands = {
  'GET /vendors': {
    usage: 'vendors list',
    columns:
      'VENDOR=name, ADDRESS=baseUrl, CREDENTIAL={credential.name|none needed}: {credential.source}, breaker, since, WHY=reason, PROBE=probe.state|off, PROBE SAID=probe.message, CALLS=requests, errors, P50 MS=latencyMsP50, lastError',
    empty: 'No vendors yet. Connect one with: tollgate connect <preset>; tollgate presets lists them.',
  },
  'PUT /vendors/{name}/credential': {
    usage: 'vendors credential <vendor>: Stores a vendor’s credential, encrypted. Reads it from standard input.',
    about: 'It cannot be an argument, because arguments end up in the shell history.',
    words: 'Stored as {name}.',
  },
  'DELETE /vendors/{name}/credential': {
    usage: 'vendors forget <vendor>: Removes a stored credential.',
    words: '{name} is no longer stored.',
  },
  'POST /vendors/{name}/test': {
    usage: 'vendors test <vendor>: Tests a vendor: lists its models and makes the smallest real call.',
    words: '[steps:{method} {address}: {status|no answer} in {latencyMs} ms. {message}\n]{message}',
    without: ['credential'],
  },
  'GET /vendors/{name}/credentials': {
    usage:
      'vendors credentials <vendor>: The credentials of one vendor: lists them, or adds, changes or removes one of several.',
    about:
      'A rejected or limited credential pauses, and the others stay in use. Without --key-stdin the value is taken from this shell where it has a variable of that name; otherwise the gateway must have it.',
    columns: CREDENTIALS,
    empty: 'No credentials: this vendor needs none.',
    without: ['salt'],
  },
  'PUT /vendors/{name}/credentials/{credential}': {
    usage: 'vendors credentials <vendor> --set <NAME>: Adds this credential, or changes its value or weight.',
    columns: CREDENTIALS,
  },
  'DELETE /vendors/{name}/credentials/{credential}': {
    usage: 'vendors credentials <vendor> --remove <NAME>: Removes this one.',
    columns: CREDENTIALS,
  },
  'GET /catalog/versions': {
    usage: 'catalog versions: Lists all versions, newest first.',
    columns: 'version, SINCE=appliedAt, BY=actor, note',
    empty: 'No versions yet. Apply a catalog with: tollgate catalog apply <file>',
    without: ['limit'],
  },
  'POST /catalog/rollback': {
    usage: 'catalog rollback <version>: Applies an earlier version again.',
    words: 'Version {version} is in force; it is version {given.version} again.[changes:\n  {item}]',
    without: ['dryRun', 'credentials'],
  },
  'PATCH /models/{uid}': [
    {
      usage: 'catalog enable <uid>: Enables a model or a data endpoint.',
      words: '{uid} is enabled from version {version} on.',
      set: { enabled: true },
      without: ['pricing', 'batchFactor', 'routes', 'routing', 'note'],
    },
    {
      usage: 'catalog disable <uid>: Disables a model or a data endpoint.',
      words: '{uid} is disabled from version {version} on.',
      set: { enabled: false },
      without: ['pricing', 'batchFactor', 'routes', 'routing', 'note'],
    },
  ],
}
