// Commands of purses.
import type { Commands } from '../../operator/command.ts'

export const PURSE_COMMANDS: Commands = {
  'GET /accounts/{id}/purses': {
    usage: 'purses list <account>',
    columns: 'PURSE=id, name, status, balance, held, low, LAST CHANGE=movedAt',
    empty: 'There are no such purses. Create one with: tollgate purses create <account> <id>',
  },
  'POST /accounts/{id}/purses': {
    usage: 'purses create <account> <id>: Creates a purse for a customer.',
    about: 'The id is your own name of the customer. Creating it again changes nothing.',
  },
  'GET /accounts/{id}/purses/{purse}': { usage: 'purses show <account> <purse>' },
  'PATCH /accounts/{id}/purses/{purse}': {
    usage: 'purses change <account> <purse>: Renames, freezes, reopens or closes a purse.',
  },
  'POST /accounts/{id}/purses/{purse}/grants': [
    {
      usage: 'purses grant <account> <purse> <credits>: Puts credits into a purse.',
      words: 'It has {balance} credits.',
    },
    {
      usage: 'purses take <account> <purse> <credits>: Takes credits of a purse back, and no more than no call holds.',
      words: 'It has {balance} credits.',
      set: { credits: '-{credits}' },
      without: ['kind'],
    },
  ],
  'GET /accounts/{id}/purses/{purse}/movements': {
    usage: 'purses movements <account> <purse>',
    columns:
      'at, kind, moved, BALANCE=balanceAfter, ACCOUNT PAID=charged, MODEL=product, list, reference, note, BY=actor',
    empty: 'Nothing has moved yet.',
  },
  'GET /accounts/{id}/purses/{purse}/statement': { usage: 'purses statement <account> <purse>' },
  'POST /accounts/{id}/purses/{purse}/sessions': {
    usage: 'purses session <account> <purse>: Creates a session token for a customer’s app or page.',
    once: 'token',
  },
  'GET /accounts/{id}/purses/{purse}/sessions': {
    usage: 'purses sessions <account> <purse>',
    columns: 'id, TOKEN=prefix, callMax|any, expiresAt, revokedAt',
    empty: 'There are no session tokens that have not expired.',
  },
  'DELETE /accounts/{id}/purses/{purse}/sessions/{session}': {
    usage: 'purses revoke <account> <purse> <session>: Revokes a session token.',
    words: 'Revoked.',
  },
  'GET /accounts/{id}/purse-prices': { usage: 'purses prices <account>' },
  'GET /accounts/{id}/purse-margins': { usage: 'purses margins <account>' },
  'PUT /accounts/{id}/purse-events': {
    usage: 'purses events <account>: Sets where an account is told of its purses.',
    words: 'Told at {url|no address}.',
  },
}
