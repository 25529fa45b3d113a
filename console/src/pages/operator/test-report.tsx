import { formatMs } from '../../format.ts'
import { Button } from '../../ui/button.tsx'
import type { VendorTest } from '../../wire.ts'

/** What a test of a vendor did, and what came of it. */
export function TestReport({ test, onAddress }: { test: VendorTest; onAddress?: (address: string) => void }) {
  const { addressSuggested } = test
  return (
    <div className="stack-tight">
      <ul className="test-steps">
        {test.steps.map((step) => (
          <li key={step.what} className="small">
            <code>
              {step.method} {step.address}
            </code>{' '}
            {step.status === null ? 'no answer' : `HTTP ${step.status}`}, {formatMs(step.latencyMs)}
            {step.inputTokens === null ? '' : `, ${step.inputTokens} tokens in, ${step.outputTokens} out`}
          </li>
        ))}
      </ul>
      <p className={`verdict tone-${test.ok ? 'good' : 'bad'}`}>
        {test.ok ? 'It works.' : 'Not working.'} {test.message}
      </p>
      {addressSuggested && onAddress ? (
        <Button small onClick={() => onAddress(addressSuggested)}>
          Use {addressSuggested}
        </Button>
      ) : null}
    </div>
  )
}
