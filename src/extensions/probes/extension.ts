// Asks vendors whether they answer: free probes at an interval, and a test with the smallest call.
import { defineExtension } from '../../extension.ts'
import { createProber } from './probe.ts'
import { testedRoute, testVendor } from './vendor-test.ts'

export const probes = defineExtension({
  name: 'probes',
  checks: (deps) => ({
    prober: createProber(deps),
    testedRoute,
    test: (target, call, isForeign = false) =>
      testVendor(target, call, { ...deps, added: deps.catalog.current.added, isForeign }),
  }),
})
