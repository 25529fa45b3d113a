// Where the audit log is exported to, from the command line.
import type { AuditExportView } from '../jobs/views.ts'
import { CliError, type Command, type Invocation, type Option, text, told } from './command.ts'
import { card } from './table.ts'

const COMMON: Readonly<Record<string, Option>> = {
  wait: {
    type: 'string',
    value: 'seconds',
    help: 'How long a row may wait for others to be sent with it: 0 for a webhook, 3600 for S3 by default.',
  },
  from: {
    type: 'string',
    value: 'start|now',
    allowed: ['start', 'now'],
    help: 'The whole log, or only what comes. Without it, an export that is there goes on, and a new one starts.',
  },
}

function show({ target, ...rest }: AuditExportView): string {
  if (!target) return 'The audit log is not exported.'
  return card({ ...target, ...rest })
}

function commonOf(call: Invocation): { waitSeconds?: number; from?: string } {
  const [wait, from] = [text(call, 'wait'), text(call, 'from')]
  return { ...(wait === undefined ? {} : { waitSeconds: Number(wait) }), ...(from === undefined ? {} : { from }) }
}

const put = (call: Invocation, body: object) =>
  told(call.api.call<AuditExportView>('PUT', '/audit-export', { ...body, ...commonOf(call) }), show)

export const AUDIT_EXPORT_COMMANDS: readonly Command[] = [
  {
    name: 'audit-export show',
    summary: 'Where the audit log is exported to, how far that has come, and why the last attempt failed.',
    run: (call) => told(call.api.call<AuditExportView>('GET', '/audit-export'), show),
  },
  {
    name: 'audit-export webhook',
    summary: 'Exports the audit log as JSON lines to a webhook.',
    args: ['url'],
    about: 'It replaces what was set before. The answer has the secret by which the receiver checks signatures.',
    options: COMMON,
    run: (call) => put(call, { kind: 'webhook', url: call.args[0] }),
  },
  {
    name: 'audit-export s3',
    summary: 'Exports the audit log as JSON lines to a bucket of S3 or of a store that speaks its API.',
    args: ['endpoint', 'bucket'],
    options: {
      ...COMMON,
      region: { type: 'string', value: 'name', help: 'The region; us-east-1 by default.' },
      prefix: { type: 'string', value: 'path', help: 'What names of objects begin with; audit by default.' },
      'access-key': { type: 'string', value: 'id', help: 'The access key id.' },
      'secret-env': {
        type: 'string',
        value: 'name',
        help: 'The environment variable with the secret access key; - reads it from the standard input. Without it, a stored one stays.',
      },
      'virtual-host': { type: 'boolean', help: 'Puts the bucket into the host name instead of the path.' },
    },
    async run(call) {
      const [endpoint, bucket] = call.args
      const name = text(call, 'secret-env')
      const secret = name === '-' ? (await call.input()).trim() : name && call.settings.credential(name)
      if (name !== undefined && !secret) throw new CliError(`There is no value for the secret access key in ${name}.`)
      const given = {
        region: text(call, 'region'),
        prefix: text(call, 'prefix'),
        accessKeyId: text(call, 'access-key'),
      }
      return put(call, {
        ...{ kind: 's3', endpoint, bucket, ...given, virtualHost: call.values['virtual-host'] === true },
        ...(secret ? { secretAccessKey: secret } : {}),
      })
    },
  },
  {
    name: 'audit-export off',
    summary: 'Ends the export. The log itself stays.',
    run: (call) => told(call.api.call<AuditExportView>('DELETE', '/audit-export'), () => 'The export has ended.'),
  },
]
