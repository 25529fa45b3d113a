import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { FROM_TABLE } from './tables.ts'

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
