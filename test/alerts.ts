// The alerts of a test's gateway.
import type { Gateway } from '../src/compose.ts'
import { alerts } from '../src/extensions/alerts/extension.ts'

export const openedAlerts = ({ gateway }: { readonly gateway: Gateway }) => gateway.opened(alerts).alerts
