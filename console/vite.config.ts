import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { isDataEndpoint } from '../src/catalog/endpoint.ts'
import { ENDPOINTS } from '../src/catalog/index.ts'
import { clientCall } from '../src/catalog/reference.ts'
import { ADVICE, FAULTS } from '../src/kernel/fault.ts'

/** By the format of a text endpoint, or by the kind of product that the endpoint sells. */
const paths = ENDPOINTS.flatMap(({ id, sells, format, method, path }) =>
  sells && method === 'POST' ? [[format ? id : sells, path]] : [],
)

const calls = ENDPOINTS.filter(isDataEndpoint).map((spec) => [spec.id, clientCall(spec)])

const faults = Object.entries(FAULTS).map(([name, { text }]) => [name, { text, advice: Reflect.get(ADVICE, name) }])

/** What the console takes from the tables of endpoints and faults. */
export const FROM_TABLE = {
  // Of several that sell the same, the first.
  ENDPOINT_PATHS: Object.fromEntries(paths.toReversed()),
  CLIENT_CALLS: Object.fromEntries(calls),
  FAULT_WORDS: Object.fromEntries(faults),
}

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  plugins: [react()],
  define: Object.fromEntries(Object.entries(FROM_TABLE).map(([name, value]) => [name, JSON.stringify(value)])),
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // Everything the page needs is a file of its own: the content policy has no room for inlined scripts or fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
    // The palette is written with light-dark(), which these browsers know; lowering it would double the style sheet.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    sourcemap: false,
    reportCompressedSize: false,
  },
  server: {
    host: '127.0.0.1',
    // The real gateway answers: `npm start` in another terminal.
    proxy: { '^/(console/api|assets|docs)': 'http://127.0.0.1:8080' },
  },
})
