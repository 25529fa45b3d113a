// Connecting a vendor by a preset or by hand, with a test before anything is stored; changing and removing it.
import { defineExtension } from '../../extension.ts'
import { type Commands, withCommands } from '../../operator/command.ts'
import { type ConnectDeps, connectResources } from './resources.ts'
import { type VendorEditDeps, vendorEditResources } from './vendor.ts'

type Core = ConnectDeps & VendorEditDeps

const COMMANDS: Commands = {
  'GET /presets': {
    usage: 'presets',
    columns:
      'name, VENDOR=title, ADDRESS=baseUrl, CREDENTIAL=credential|none needed, OTHER LOGINS=logins.name, API FORMAT=formats, MODELS=models.length, LIST PRICES=prices.noted|no list price noted',
  },
  'PATCH /vendors/{name}': {
    usage: 'vendors change <vendor>: Changes a vendor: its address, name, format or timeouts.',
    about:
      'Every route follows a new name. A member of a member has a dot: --set timeouts.connectMs=2000. A new host needs the credential again: --key-stdin.',
    also: { 'url <address>: A new base URL.': 'entry.baseUrl' },
    without: ['note'],
  },
  'DELETE /vendors/{name}': {
    usage: 'vendors remove <vendor>: Removes a vendor with all routes to it.',
    about: 'Models that no other vendor serves are named first, and are removed with it only with --force.',
    without: ['note'],
  },
}

export const connect = defineExtension<Core>({
  name: 'connect',
  resources: (all: Core) => withCommands([...connectResources(all), ...vendorEditResources(all)], COMMANDS),
})
