// Guardrails: the rules of the catalog by which requests and answers are checked.
import { api } from '../../api.ts'
import { useProposal } from '../../pages/operator/review.tsx'
import { useQuery } from '../../query.ts'
import { LinkButton } from '../../ui/button.tsx'
import { Switch } from '../../ui/field.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import { toastError } from '../../ui/toast.tsx'
import type { Catalog, GuardrailRule } from '../../wire.ts'
import { checkWords, draftOf, PHASE_WORDS, scopeWords, withRule } from './guardrail-draft.ts'

const HOME = '/operator/guardrails'
const to = ({ name }: { name: string }) => `${HOME}/${encodeURIComponent(name)}`

export function GuardrailsPage() {
  const catalog = useQuery('catalog', api.catalog)
  return (
    <Page
      title="Guardrails"
      lead="Rules that check what callers send and what vendors answer. They redact personal data and secrets, or check texts with a service of yours or a moderation model. Without rules nothing is checked."
      actions={
        <LinkButton right="catalog:write" look="primary" icon="plus" to={`${HOME}/new`}>
          Add a guardrail
        </LinkButton>
      }
    >
      <Card flush>
        <Loaded query={catalog}>
          {(data) =>
            Object.keys(data.document.guardrails ?? {}).length === 0 ? (
              <Empty icon="check" title="No guardrails yet">
                <p>Start with redaction: choose what to hide, and try it on a text of your own.</p>
              </Empty>
            ) : (
              <Rules catalog={data} isStale={catalog.busy} />
            )
          }
        </Loaded>
      </Card>
    </Page>
  )
}

interface NamedRule {
  name: string
  rule: GuardrailRule
}

/** `isStale`: it is being read again. */
function Rules({ catalog, isStale }: { catalog: Catalog; isStale: boolean }) {
  const { propose, review } = useProposal(catalog)
  const turn = ({ name, rule: { enabled: _, ...others } }: NamedRule, enabled: boolean) => {
    const after = withRule(catalog.document, name, enabled ? others : { ...others, enabled })
    propose({ after, text: `The guardrail ${name} is ${enabled ? 'on' : 'off'} now.` }).catch(toastError)
  }
  return (
    <>
      {review}
      <Table
        label="Guardrails"
        rows={Object.entries(catalog.document.guardrails ?? {}).map(([name, rule]): NamedRule => ({ name, rule }))}
        rowKey={({ name }) => name}
        to={to}
        dim={({ rule }) => rule.enabled === false}
        columns={[
          {
            head: 'Rule',
            main: true,
            cell: (row) => {
              const [kind, about] = checkWords(row.rule)
              return <Named name={row.name} to={to(row)} sub={`${kind}: ${about}`} />
            },
          },
          {
            head: 'Checks',
            cell: ({ name, rule }) =>
              draftOf(name, rule)
                .on.map((phase) => PHASE_WORDS[phase])
                .join(' and '),
          },
          { head: 'For', cell: ({ rule }) => scopeWords(rule) },
          {
            head: 'If it fails',
            tight: true,
            cell: ({ name, rule }) =>
              rule.redact ? '–' : draftOf(name, rule).onFailure === 'block' ? 'Block the call' : 'Let it through',
          },
          {
            head: 'On',
            tight: true,
            cell: (row) => (
              <Switch
                right="catalog:write"
                label={`Guardrail ${row.name}`}
                on={row.rule.enabled !== false}
                disabled={isStale}
                onSwitch={(enabled) => turn(row, enabled)}
              />
            ),
          },
        ]}
      />
    </>
  )
}
