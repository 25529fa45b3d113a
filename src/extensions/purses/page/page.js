// The page on which a customer sees a purse and tops it up. Its token comes in the fragment of the address, which is
// sent to no server, and stays in this tab.
const KEPT = 'purse-token'
const POLLS = 40
const POLL_MS = 1_500
const WORDS = {
  grant: 'Credits',
  topup: 'Top-up',
  takeback: 'Taken back',
  settled: 'Call',
  released: 'Call, not charged',
  expired: 'Call, not charged',
  empty: 'Too little left',
  frozen: 'Paused',
  reopened: 'Open again',
  closed: 'Closed',
}
const STATES = { frozen: 'This purse is paused: calls are refused for now.', closed: 'This purse is closed.' }
const CHOICES = [1, 2, 5].flatMap((part) => [1, 10, 100, 1000, 10_000, 100_000].map((ten) => part * ten))

const at = (id) => document.getElementById(id)
const say = (text) => {
  at('said').textContent = text
}
const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 6 })
const times = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

async function fetched(path, body) {
  const headers = { authorization: `Bearer ${sessionStorage.getItem(KEPT)}` }
  if (body) headers['content-type'] = 'application/json'
  const answer = await fetch(`/v1/purse${path}`, {
    method: body ? 'POST' : 'GET',
    headers,
    body: body && JSON.stringify(body),
  })
  if (answer.ok) return answer
  const { error } = await answer.json()
  throw new Error(answer.status === 401 ? 'This link has expired. Open it again where you found it.' : error.message)
}

const ask = async (path, body) => (await (await fetched(path, body)).json()).data

/** The token goes with the request, so an address alone opens nothing. */
async function download({ id, number }) {
  const href = URL.createObjectURL(await (await fetched(`/invoices/${encodeURIComponent(id)}`)).blob())
  Object.assign(document.createElement('a'), { href, download: `${number}.pdf` }).click()
}

function invoiceOf(invoice) {
  const { number, kind, issuedAt, gross, currency } = invoice
  const what = kind === 'credit_note' ? 'Credit note' : 'Invoice'
  const textContent = `${what} ${number} · ${times.format(new Date(issuedAt))} · ${gross} ${currency}`
  const [row, button] = [document.createElement('li'), document.createElement('button')]
  Object.assign(button, { type: 'button', textContent })
  button.addEventListener('click', () => download(invoice).catch(({ message }) => say(message)))
  row.append(button)
  return row
}

function showBrand({ name, logo, colors }) {
  at('brand').textContent = name
  document.title = `${name}: your credits`
  at('logo').hidden = logo === null
  if (logo !== null) at('logo').src = logo
  for (const [token, [light, dark]] of Object.entries(colors))
    document.documentElement.style.setProperty(`--${token}`, `light-dark(${light}, ${dark})`)
}

function showSale(sale, isClosed) {
  at('buy').hidden = !sale || isClosed
  if (!sale) return
  at('currency').textContent = sale.currency
  at('test').hidden = !sale.isTest
  at('price').textContent =
    `1 credit costs ${sale.pricePerCredit} ${sale.currency}. From ${sale.minimum} to ${sale.maximum} ${sale.currency} at once.`
  const offered = CHOICES.filter((one) => one >= Number(sale.minimum) && one <= Number(sale.maximum)).sort(
    (a, b) => a - b,
  )
  const buttons = offered.slice(0, 4).map((one) => {
    const button = Object.assign(document.createElement('button'), {
      type: 'button',
      textContent: `${one} ${sale.currency}`,
    })
    button.addEventListener('click', () => pay(String(one)))
    return button
  })
  at('choices').replaceChildren(...buttons)
}

function rowOf({ at: when, kind, moved, balanceAfter, product }) {
  const what = product === null ? WORDS[kind] : `${WORDS[kind]} · ${product}`
  const cells = [times.format(new Date(when)), what, numbers.format(moved), numbers.format(balanceAfter)]
  const row = document.createElement('tr')
  row.append(...cells.map((textContent) => Object.assign(document.createElement('td'), { textContent })))
  return row
}

async function show() {
  const [{ purse, brand, sale, movements }, invoices] = await Promise.all([ask('/page'), ask('/invoices')])
  showBrand(brand)
  if (purse.name) at('title').textContent = purse.name
  at('balance').textContent = numbers.format(purse.balance)
  at('held').hidden = purse.held === '0'
  at('held').textContent = `${numbers.format(purse.held)} of them are held for running calls.`
  showSale(sale, purse.status === 'closed')
  at('invoiced').hidden = invoices.length === 0
  at('invoices').replaceChildren(...invoices.map(invoiceOf))
  at('none').hidden = movements.length > 0
  document.querySelector('table').hidden = movements.length === 0
  at('moves').replaceChildren(...movements.map(rowOf))
  at('known').hidden = false
  say(STATES[purse.status] ?? '')
}

async function pay(amount) {
  say('One moment…')
  try {
    location.assign((await ask('/topups', { amount })).url)
  } catch (error) {
    say(error.message)
  }
}

/** The provider's report may come later than the customer. */
async function confirmed(topUp) {
  for (let poll = 0; poll < POLLS; poll++) {
    const { state, credits } = await ask(`/topups/${encodeURIComponent(topUp)}`)
    if (state === 'paid') return `Thank you: ${numbers.format(credits)} credits were added.`
    if (state !== 'pending') return 'This payment brought no credits.'
    say('Waiting for the payment…')
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return 'The payment is not confirmed yet. Look again later.'
}

async function start() {
  if (location.hash.length > 1) sessionStorage.setItem(KEPT, location.hash.slice(1))
  const topUp = new URLSearchParams(location.search).get('topup')
  history.replaceState(null, '', location.pathname)
  if (sessionStorage.getItem(KEPT) === null) return say('Open this page by the link that you were given.')
  try {
    await show()
    if (topUp === null) return
    const result = await confirmed(topUp)
    await show()
    say(result)
  } catch (error) {
    say(error.message)
  }
}

at('buy').addEventListener('submit', (event) => {
  event.preventDefault()
  pay(at('amount').value.trim())
})
addEventListener('hashchange', start)
await start()
