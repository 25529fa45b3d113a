// Mustang, the reference implementation of ZUGFeRD and Factur-X, judges invoices of many shapes: PDF/A-3 by veraPDF,
// the XML by its schema and the rules of EN 16931.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAudit } from '../../src/database/audit.ts'
import { createChanges } from '../../src/database/changes.ts'
import { invoicePdf } from '../../src/extensions/billing/invoices/invoice-pdf.ts'
import type { InvoiceDocument } from '../../src/extensions/billing/invoices/views.ts'
import { createInvoices } from '../../src/extensions/sales/invoices/invoices.ts'
import { openBranding } from '../../src/identity/branding/branding.ts'
import { brandingInput } from '../../src/identity/branding/views.ts'
import { realWorld as world } from '../../src/kernel/world.ts'
import { freshDatabase } from '../database.ts'
import { issueMany, logoPng } from '../invoice-shapes.ts'
import { assert, test } from '../kit.ts'
import { mavenJars, runProgram } from '../sdk/cache.ts'

const COUNT = Number(process.env.TOLLGATE_TEST_INVOICES ?? 1_000)
const MUSTANG = 'org.mustangproject:validator:2.25.0'
const VALIDATE_MS_MAX = 3_600_000

/** Prints a line for each file. */
const PROGRAM = `import java.io.File;
import java.util.Arrays;
import org.mustangproject.validator.ZUGFeRDValidator;
public class Validate {
  public static void main(String[] args) {
    File[] files = new File(args[0]).listFiles();
    Arrays.sort(files);
    for (File file : files) {
      ZUGFeRDValidator validator = new ZUGFeRDValidator();
      String report = validator.validate(file.getAbsolutePath());
      // What it calls valid is the XML. What veraPDF says of the PDF stands in the report.
      boolean isValid = validator.wasCompletelyValid() && report.contains("flavour=3b") && report.contains("isCompliant=true");
      System.out.println((isValid ? "valid " : "invalid ") + file.getName() + (isValid ? "" : " " + report.replaceAll("\\\\s+", " ")));
    }
    System.exit(0);
  }
}
`

test(`${COUNT} invoices of many shapes are valid`, async (t) => {
  const jars = await mavenJars(MUSTANG, ['sonatype-oss-public'])
  if ('missing' in jars) {
    console.log(`Mustang was not run: ${jars.missing}`)
    return t.skip(jars.missing)
  }
  const fresh = await freshDatabase()
  const database = fresh.open()
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-invoices-'))
  try {
    const audit = createAudit({ database, world })
    const branding = await openBranding({ database, changes: createChanges(database, world), audit })
    const by = { actor: 'test', ip: null, requestId: null }
    await branding.change(brandingInput.parse({ name: 'Reseller', color: '#c81e5a' }), by)
    const invoices = createInvoices({ database, world, audit, branding })
    await mkdir(join(folder, 'pdf'))
    await writeFile(join(folder, 'Validate.java'), PROGRAM)
    for (const [at, { id, account }] of (await issueMany(database, invoices, COUNT)).entries()) {
      // Half of them with a picture, half with the name in colour.
      if (at === Math.floor(COUNT / 2)) await branding.changeLogo(logoPng(), by)
      const { name, body } = await invoices.file(id, account)
      await writeFile(join(folder, 'pdf', name), body)
    }
    // Two that are broken, so that the judge is seen to judge: a sum that is wrong, and a PDF without the colours that
    // PDF/A wants.
    const [row] = await database.query<{ document: InvoiceDocument }>({
      text: 'select document from invoice order by gross_minor desc limit 1',
    })
    assert.ok(row)
    // The rate is not the one by which the VAT was worked out.
    const wrong = { ...row.document, taxMinor: '1', tax: { category: 'S' as const, rate: '90', reason: null } }
    await writeFile(join(folder, 'pdf', 'broken-sum.pdf'), await invoicePdf(wrong))
    const colourless = (await invoicePdf(row.document)).toString('latin1').replace('/OutputIntents', '/OutputIntentz')
    await writeFile(join(folder, 'pdf', 'broken-pdf.pdf'), Buffer.from(colourless, 'latin1'))
    const ran = await runProgram(
      'java',
      ['-cp', join(jars.directory, 'jars', '*'), join(folder, 'Validate.java'), join(folder, 'pdf')],
      { timeoutMs: VALIDATE_MS_MAX },
    )
    const lines = ran.out.split('\n').filter((line) => /^(in)?valid /.test(line))
    const invalid = lines.filter((line) => line.startsWith('invalid'))
    assert.equal(lines.length, COUNT + 2, ran.err)
    assert.deepEqual(
      invalid.map((line) => line.slice(0, 2_000)).filter((line) => !line.startsWith('invalid broken-')),
      [],
    )
    assert.equal(invalid.length, 2, 'the broken ones')
  } finally {
    await rm(folder, { recursive: true, force: true })
    await database.close()
    await fresh.drop()
  }
})
