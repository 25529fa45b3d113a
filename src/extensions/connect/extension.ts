// Connecting a vendor by a preset or by hand, with a test before anything is stored.
import { defineExtension } from '../../extension.ts'
import { type Commands, withCommands } from '../../operator/command.ts'
import { type ConnectDeps, connectResources } from './resources.ts'

const COMMANDS: Commands = {
  'GET /presets': {
    usage: 'presets',
    columns:
      'name, VENDOR=title, ADDRESS=baseUrl, CREDENTIAL=credential|none needed, OTHER LOGINS=logins.name, API FORMAT=formats, MODELS=models.length, LIST PRICES=prices.noted|no list price noted',
  },
}

export const connect = defineExtension<ConnectDeps>({
  name: 'connect',
  resources: (all: ConnectDeps) => withCommands(connectResources(all), COMMANDS),
})
