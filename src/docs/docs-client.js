// What the documentation can do beyond reading, where the browser runs scripts: copy an example, open the operation that an
// address names. Everything else works without it.
for (const block of document.querySelectorAll('main pre')) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(block.textContent)
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

function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  const details = named?.closest('details')
  if (!details) return
  details.open = true
  named.scrollIntoView()
}
addEventListener('hashchange', openNamed)
openNamed()
