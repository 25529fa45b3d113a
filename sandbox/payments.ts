// A simulated payment provider: a checkout, the page on which a customer pays, and the webhook that says so. It moves
// no money.
import { createHmac, randomBytes } from 'node:crypto'
import { escapeHtml } from '../src/kernel/html.ts'
import { readJson } from '../src/kernel/json.ts'
import type { World } from '../src/kernel/world.ts'
import type { Room } from './room.ts'

interface Checkout {
  readonly payment: string
  readonly account: string
  readonly offer?: string
  readonly name: string
  readonly amount: string
  readonly currency: string
  readonly returnUrl: string
  readonly webhook: { readonly url: string; readonly secret: string }
}

const PATH = '/payments/checkouts'
const CHECKOUTS_MAX = 1000

export function openPaymentsRoom(): Room {
  const checkouts = new Map<string, Checkout>()

  function open(given: Checkout): string {
    const [oldest] = checkouts.keys()
    if (checkouts.size >= CHECKOUTS_MAX && oldest !== undefined) checkouts.delete(oldest)
    const id = `test_${randomBytes(12).toString('hex')}`
    checkouts.set(id, given)
    return id
  }

  return {
    name: 'payments',
    match: (method, path) =>
      method === 'POST' ? path === PATH || path.startsWith(`${PATH}/`) : path.startsWith(`${PATH}/`),
    async serve(req, res, ctx) {
      const body = await ctx.body()
      if (ctx.isGone) return
      const html = (status: number, content: string) =>
        void res.writeHead(status, { 'content-type': 'text/html; charset=utf-8' }).end(page(content))
      if (ctx.path === PATH) {
        // A page of a browser may send a form here, and no JSON.
        if (req.headers['content-type'] !== 'application/json') return ctx.json(415, { error: 'JSON is expected.' })
        const given = readJson(body).value as unknown as Checkout // the gateway alone calls it, with these members
        return ctx.json(200, { id: open(given) })
      }
      const checkout = checkouts.get(ctx.path.slice(PATH.length + 1))
      if (!checkout) return html(404, '<h1>This checkout has ended</h1><p>Go back and start the purchase again.</p>')
      if (req.method === 'GET') return html(200, checkoutPage(checkout))
      const status = new URLSearchParams(body.toString()).get('outcome') === 'paid' ? 'paid' : 'failed'
      const answer = await tell(checkout, status, ctx.world)
      if (answer !== 200)
        return html(502, `<h1>The gateway did not take the report</h1><p>Its webhook answered ${answer}.</p>`)
      res.writeHead(303, { location: checkout.returnUrl }).end()
    },
  }
}

/** The webhook, signed as Standard Webhooks specifies. Returns the status of its answer; 0: there was none. */
async function tell(
  { payment, account, offer, amount, currency, webhook }: Checkout,
  status: string,
  world: World,
): Promise<number> {
  const reason = status === 'failed' ? { reason: 'The test card was declined.' } : {}
  const data = { id: `test-${payment}`, payment, account, offer, amount, currency, status, ...reason }
  const timestamp = new Date(world.nowMs()).toISOString()
  const body = JSON.stringify({ type: `payment.${status}`, timestamp, data })
  const id = `evt_${randomBytes(12).toString('hex')}`
  const seconds = Math.floor(world.nowMs() / 1000)
  const signature = createHmac('sha256', webhook.secret).update(`${id}.${seconds}.${body}`).digest('base64')
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${signature}`,
  }
  try {
    return (await fetch(webhook.url, { method: 'POST', headers, body })).status
  } catch {
    return 0
  }
}

function checkoutPage({ name, amount, currency, returnUrl }: Checkout): string {
  const price = `${escapeHtml(amount)} ${escapeHtml(currency)}`
  return `<p class="mark">Test payment</p><h1>${escapeHtml(name)}</h1><p class="price">${price}</p>
<p>This is a simulated payment provider. No money moves, and no card is asked for.</p>
<form method="post"><button name="outcome" value="paid" class="pay">Pay ${price}</button>
<button name="outcome" value="failed">Decline the payment</button></form>
<p><a href="${escapeHtml(returnUrl)}">Back without paying</a></p>`
}

function page(content: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Test payment</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:0;display:grid;place-items:center;min-height:100vh}
main{max-width:26rem;padding:2rem}h1{margin:.5rem 0 0;font-size:1.5rem}.price{font-size:2rem;margin:.25rem 0 1rem;font-variant-numeric:tabular-nums}
.mark{display:inline-block;margin:0;padding:.1rem .6rem;border-radius:1rem;background:#8a4b00;color:#fff;font-size:.85rem}
form{display:grid;gap:.75rem}button{font:inherit;padding:.6rem 1rem;border:1px solid currentColor;border-radius:.5rem;background:none;color:inherit;cursor:pointer}
.pay{background:#0b5d57;border-color:#0b5d57;color:#fff}</style><main>${content}</main></html>`
}
