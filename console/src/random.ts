/** For ids and idempotency keys. `randomUUID` is missing on pages that came without TLS. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('')
}
