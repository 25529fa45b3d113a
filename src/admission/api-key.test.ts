// What a key is made of, and what of it is stored.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { realWorld } from '../kernel/world.ts'
import { digestOf, makeKey } from './api-key.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

test('a key has 190 random bits and a checksum, and is found only under the secret it was made with', () => {
  const key = makeKey(realWorld)
  const [, body = '', sum = ''] = /^tg_live_([0-9A-Za-z]{32})([0-9A-Za-z]{6})$/.exec(key) ?? []
  assert.equal(Math.floor(body.length * Math.log2(BASE62.length)), 190)
  assert.equal(
    [...sum].reduce((value, char) => value * 62 + BASE62.indexOf(char), 0),
    crc32(body),
  )
  const used = new Set(Array.from({ length: 200 }, () => [...makeKey(realWorld).slice(8, 40)]).flat())
  assert.equal(used.size, BASE62.length, 'every character occurs')
  const [secret, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  assert.deepEqual(digestOf(secret, key), digestOf(secret, key))
  assert.notDeepEqual(digestOf(secret, key), digestOf(other, key))
})
