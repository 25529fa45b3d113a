import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './styles/tokens.css'
import './styles/base.css'
import './styles/layout.css'
import './styles/controls.css'
import './styles/data.css'
import './styles/pages.css'
import { App } from './app.tsx'
import { showTitlesOnTap } from './ui/tap.ts'

showTitlesOnTap()

const root = document.getElementById('root')
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  )
