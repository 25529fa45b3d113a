// A gateway in a process of its own that takes payment events and, once in a while, is killed after the credits were
// granted and before it has answered.

import { sales } from '../src/extensions/sales/extension.ts'
import { startGateway } from './gateway.ts'

const { PAYMENT_PROCESS = '{}' } = process.env
const { connection, stripeUrl, killEvery } = JSON.parse(PAYMENT_PROCESS)
const gateway = await startGateway({
  env: { TOLLGATE_STRIPE_URL: stripeUrl },
  database: { connection },
  hook: (app) => {
    let answers = 0
    app.answered = ({ raw }) => {
      answers += 1
      if (raw.url?.startsWith('/webhooks/') && answers >= killEvery) process.kill(process.pid, 'SIGKILL')
    }
  },
})
process.on('message', (message) => {
  if (message === 'renew')
    void gateway.gateway
      .opened(sales)
      .sales.plans.renew()
      .then(() => process.send?.('renewed'))
})
process.send?.(gateway.url)
