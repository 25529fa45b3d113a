// Where a program may have people sent back to, and how that is shown to them.

/** Browsers let any website answer these, by `registerProtocolHandler` or an extension: such an address is no program on the person's machine. */
const CLAIMABLE =
  /^(?:(?:web|ext)\+.*|bitcoin|ethereum|ftps?|geo|im|ircs?|magnet|mailto|matrix|mms|news|nntp|openpgp4fpr|sftp|sip|sms|smsto|ssh|tel|urn|webcal|wtai|xmpp):$/
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

export function mayRedirectTo({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' ? LOOPBACK.test(hostname) : !CLAIMABLE.test(protocol)
}

/** With its scheme. The host is shown only where it means a machine: in a scheme of a program's own it is any word. */
export function shownRedirect({ protocol, host }: URL): string {
  const isWeb = protocol === 'https:' || protocol === 'http:'
  return isWeb ? `${protocol}//${host}` : `${protocol} (a program on your device)`
}
