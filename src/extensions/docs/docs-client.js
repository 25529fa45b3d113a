// What the documentation can do beyond reading, where the browser runs scripts: copy an example, keep the language that
// was chosen, send the request of a page. Everything else works without it.

function copyButton(block) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(block.textContent.trimEnd())
      button.textContent = 'Copied'
    } catch {
      button.textContent = 'Select it and copy by hand'
    }
    setTimeout(() => {
      button.textContent = 'Copy'
    }, 2000)
  })
  const frame = document.createElement('div')
  frame.className = 'copyable'
  block.replaceWith(frame)
  frame.append(block, button)
}
for (const block of document.querySelectorAll('main pre')) copyButton(block)

// The language that was chosen last, on every page of this tab.
const LANGUAGE = 'docs-language'
const languageOf = (input) => input.nextElementSibling?.textContent ?? ''
const wanted = stored(LANGUAGE)
for (const input of document.querySelectorAll('.tabs > input')) {
  if (languageOf(input) === wanted) input.checked = true
  input.addEventListener('change', () => store(LANGUAGE, languageOf(input)))
}

function stored(name) {
  try {
    return sessionStorage.getItem(name) ?? ''
  } catch {
    return ''
  }
}

function store(name, value) {
  try {
    sessionStorage.setItem(name, value)
  } catch {
    // Without storage it lasts as long as the page.
  }
}

// The key is kept by this tab alone, and is sent in a header and nowhere else.
const KEY = 'docs-key'
for (const form of document.querySelectorAll('.try-form')) {
  const key = form.querySelector('[data-key]')
  const result = form.querySelector('.result')
  form.hidden = false
  key.value = stored(KEY)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    store(KEY, key.value.trim())
    result.textContent = 'Sending …'
    // A second click would be a second call, which is paid for.
    const button = form.querySelector('button[type=submit], button:not([type])')
    button.disabled = true
    send(form, key.value.trim())
      .then(
        (shown) => result.replaceChildren(...shown),
        () => {
          result.textContent = 'The gateway did not answer. Is it still running?'
        },
      )
      .finally(() => {
        button.disabled = false
      })
  })
}

async function send(form, key) {
  const { method } = form.dataset
  let { path } = form.dataset
  const query = new URLSearchParams()
  for (const field of form.querySelectorAll('[data-param]')) {
    const { param } = field.dataset
    if (field.dataset.in === 'path') path = path.replace(`{${param}}`, encodeURIComponent(field.value))
    else if (field.value !== '') query.append(param, field.value)
  }
  const body = form.querySelector('[data-body]')?.value
  const answer = await fetch(`${path}${query.size > 0 ? `?${query}` : ''}`, {
    method,
    credentials: 'omit',
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body }),
  })
  return shownOf(answer)
}

async function shownOf(answer) {
  const charge = answer.headers.get('x-tollgate-charge')
  const line = document.createElement('p')
  const cost = charge === null ? '' : ` · ${charge} credits`
  line.textContent = `${answer.status} ${answer.statusText}${cost} · ${answer.headers.get('x-request-id') ?? ''}`
  const block = document.createElement('pre')
  block.tabIndex = 0
  const type = answer.headers.get('content-type') ?? ''
  if (/^(?:application\/json|text\/)/.test(type)) {
    const text = await answer.text()
    try {
      block.textContent = JSON.stringify(JSON.parse(text), null, 2)
    } catch {
      block.textContent = text
    }
  } else block.textContent = `${(await answer.arrayBuffer()).byteLength} bytes of ${type}`
  return [line, block]
}

// The menu is long: the entry of this page is in view.
const menu = document.querySelector('nav')
const current = menu?.querySelector('[aria-current]')
if (current && current.offsetTop > menu.clientHeight) menu.scrollTop = current.offsetTop - menu.clientHeight / 2

// As in the console: a slash looks something up.
addEventListener('keydown', (event) => {
  if (event.key !== '/' || /^(?:INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? '')) return
  event.preventDefault()
  document.querySelector('header input')?.focus()
})

/** Old addresses name an operation on the page of all of them: its row leads to its page. */
const named =
  location.pathname === '/docs/api' ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null
const page = named?.tagName === 'A' ? named.closest('td')?.querySelector('a[href]') : undefined
if (page) location.replace(page.href)
