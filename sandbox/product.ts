// The vendor of products that have no credential yet: it knows none of their APIs, and answers what the gateway gives
// it, which is the operation's example.
import type { Room } from './room.ts'

export const productRoom: Room = {
  name: 'product',
  match: (method, path) => method === 'POST' && path.startsWith('/product/'),
  async serve(req, res, ctx) {
    const body = await ctx.body()
    if (ctx.isGone) return
    res.writeHead(200, {
      'content-type': req.headers['content-type'] ?? 'application/json',
      'content-length': body.length,
    })
    res.end(body)
  },
}
