// The balance of a customer's purse and a button that tops it up, wherever a page has <div data-purse="tgs_…"
// data-amount="10"></div>. The token names the page's site as one of its origins.
const gateway = new URL(import.meta.url).origin
for (const place of document.querySelectorAll('[data-purse]')) {
  const { purse: token, amount, label = 'Top up' } = place.dataset
  const ask = async (path, body) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${gateway}/v1/purse${path}`, { method: body ? 'POST' : 'GET', headers, body })
    const { data, error } = await answer.json()
    if (answer.ok) return data
    throw new Error(error.message)
  }
  const [words, button] = [document.createElement('span'), document.createElement('button')]
  const say = (text) => words.replaceChildren(text)
  const show = () => ask('').then(({ balance }) => say(`${balance} credits`))
  const buy = () => ask('/topups', JSON.stringify({ amount, returnUrl: location.href }))
  button.textContent = label
  button.addEventListener('click', () =>
    buy().then(
      ({ url }) => location.assign(url),
      ({ message }) => say(message),
    ),
  )
  place.replaceChildren(words, ' ', button)
  show().catch(({ message }) => say(message))
}
