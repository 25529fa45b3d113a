// How the gateway presents itself to customers: name, logo, colors, links and sender; and its mails as people get them.
import { useState } from 'react'
import { api } from '../../api.ts'
import { base64Of } from '../../pages/payment-fields.tsx'
import { refresh, useQuery } from '../../query.ts'
import { Allowed, AllowedFields } from '../../session.tsx'
import { useAction, useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Fault, Loaded } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Branding, MailPreview } from '../../wire.ts'

export function BrandingPage() {
  const branding = useQuery('branding/settings', api.branding)
  return (
    <Page title="Branding" lead="Console, mails, documentation and invoices follow.">
      <Loaded query={branding}>
        {(data) => (
          <AllowedFields right="branding:write">
            <LogoCard branding={data} />
            <BrandingCard key={JSON.stringify(data)} branding={data} />
          </AllowedFields>
        )}
      </Loaded>
    </Page>
  )
}

function LogoCard({ branding: { logo, name } }: { branding: Branding }) {
  const upload = useSubmit(async (form) => {
    const file = form.get('logo')
    if (!(file instanceof File)) return
    await api.changeLogo(await base64Of(file))
    refresh('branding/')
    toast('The logo was changed.')
  })
  const removal = useAction(async () => {
    await api.removeLogo()
    refresh('branding/')
    toast('The logo was removed.')
  })
  const error = upload.error ?? removal.error
  return (
    <Card title="Logo" lead="PNG or JPEG, at most 200 kB and 2,000 pixels wide and high.">
      {logo ? (
        <img className="brand-logo" src={logo.url} alt={`Logo of ${name}`} height={48} />
      ) : (
        <p className="muted">Default logo in use.</p>
      )}
      <Allowed right="branding:write">
        <form className="stack" onSubmit={upload.onSubmit}>
          <TextField label="File" type="file" name="logo" accept="image/png,image/jpeg" required />
          {error ? <Fault error={error} /> : null}
          <div className="row">
            <Button type="submit" busy={upload.busy}>
              Upload
            </Button>
            {logo ? (
              <Button icon="trash" busy={removal.busy} onClick={() => void removal.go()}>
                Remove the logo
              </Button>
            ) : null}
          </div>
        </form>
      </Allowed>
    </Card>
  )
}

function BrandingCard({ branding }: { branding: Branding }) {
  const [name, setName] = useState(branding.name)
  const [color, setColor] = useState(branding.color ?? '')
  const [colorDark, setColorDark] = useState(branding.colorDark ?? '')
  const [support, setSupport] = useState(branding.support ?? '')
  const [links, setLinks] = useState(branding.links.map(({ label, url }) => `${label} ${url}`).join('\n'))
  const [senderName, setSenderName] = useState(branding.sender?.name ?? '')
  const [sender, setSender] = useState(branding.sender?.address ?? '')
  const { busy, error, onSubmit } = useSubmit(async () => {
    await api.changeBranding({
      name: name.trim(),
      color: color.trim() || null,
      colorDark: colorDark.trim() || null,
      support: support.trim() || null,
      links: linksOf(links),
      sender: sender.trim() ? { name: senderName.trim() || name.trim(), address: sender.trim() } : null,
    })
    refresh('branding/')
    toast('Saved. Colors show when the page is loaded again.')
  })
  const hex = { maxLength: 7, pattern: '#[0-9A-Fa-f]{6}', title: 'Such as #7a1fa2' }
  return (
    <Card title="Name and colors">
      <form className="stack" onSubmit={onSubmit}>
        <div className="grid-3">
          <TextField label="Name" value={name} onText={setName} maxLength={60} required />
          <TextField
            label="Color"
            value={color}
            onText={setColor}
            placeholder="#0e6e74"
            hint="Color of buttons and links. It must be dark enough to be read on white."
            {...hex}
          />
          <TextField
            label="Color on dark pages"
            value={colorDark}
            onText={setColorDark}
            hint="Leave empty for a lighter shade of the color."
            {...hex}
          />
          <TextField
            label="Support address"
            type="email"
            value={support}
            onText={setSupport}
            placeholder="help@example.com"
          />
          <TextField label="Mail sender" value={senderName} onText={setSenderName} maxLength={60} placeholder={name} />
          <TextField
            label="Sender’s address"
            type="email"
            value={sender}
            onText={setSender}
            hint="Leave empty for TOLLGATE_MAIL_FROM."
          />
        </div>
        <TextArea
          label="Links"
          value={links}
          onText={setLinks}
          rows={3}
          hint="One per line, a name and an address, at most six: Privacy https://example.com/privacy"
        />
        {error ? <Fault error={error} /> : null}
        <Allowed right="branding:write">
          <div>
            <Button type="submit" look="primary" busy={busy}>
              Save
            </Button>
          </div>
        </Allowed>
      </form>
    </Card>
  )
}

/** "Privacy policy https://…": the address is the last word. */
function linksOf(text: string): Branding['links'] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
    .map((line) => {
      const at = line.lastIndexOf(' ')
      return { label: line.slice(0, Math.max(at, 0)).trim(), url: line.slice(at + 1) }
    })
}

export function MailsPage() {
  const mails = useQuery('branding/mails', api.mails)
  return (
    <Page title="Mails" lead="The mails that people get, with example links.">
      <Loaded query={mails}>{({ items }) => <Mails mails={items} />}</Loaded>
    </Page>
  )
}

function Mails({ mails }: { mails: readonly MailPreview[] }) {
  const [name, setName] = useState(mails[0]?.name ?? '')
  const mail = mails.find((one) => one.name === name)
  if (!mail) return null
  return (
    <>
      <SelectField
        label="Mail"
        value={name}
        onText={setName}
        options={mails.map(({ name: value, subject }) => [value, subject] as const)}
        hint={mail.about}
      />
      <Card title="As HTML">
        <iframe className="mail-frame" title={`${mail.subject}, as HTML`} src={api.mailAddress(name)} sandbox="" />
      </Card>
      <Card title="As text">
        <pre className="mail-text" tabIndex={0}>
          {mail.text}
        </pre>
      </Card>
    </>
  )
}
