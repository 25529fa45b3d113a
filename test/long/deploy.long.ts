// The Helm chart by helm's own checks and the schemas of Kubernetes, and the Terraform module by terraform itself,
// against a gateway.
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Page } from '../../src/kernel/view.ts'
import { assert, OPERATOR_TOKEN, pluck, type TestContext, test, testGateway } from '../gateway.ts'
import { goTool, pythonWith, runProgram } from '../sdk/cache.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const CHART = join(ROOT, 'deploy/helm/tollgate')
const HELM = 'helm.sh/helm/v3/cmd/helm@v3.19.0'
const DIGEST = `sha256:${'0'.repeat(64)}`
const IMAGE = ['--set', 'image.repository=registry.example.com/tollgate', '--set', `image.digest=${DIGEST}`]
const ALL = [
  '--set',
  'autoscaling.enabled=true',
  '--set',
  'networkPolicy.enabled=true',
  '--set',
  'ingress.enabled=true',
  '--set',
  'ingress.host=tollgate.example.com',
  '--set',
  'ingress.tlsSecret=tls',
  '--set',
  'ingress.className=nginx',
  '--set',
  'serviceMonitor.enabled=true',
  '--set',
  'serviceMonitor.tokenKey=TOLLGATE_METRICS_TOKEN',
  '--set',
  'serviceAccount.annotations.eks\\.amazonaws\\.com/role-arn=arn:aws:iam::1:role/r',
  '--set',
  'settings.TOLLGATE_WORKLOAD_IDENTITY=aws',
  '--set',
  'settings.TOLLGATE_TRUST_PROXY=10.1.2.3',
  '--set-json',
  'ledgers=[{"name":"east-1","storage":"9Gi"},{"name":"main","region":"eu","storage":"9Gi","storageClass":"fast"}]',
]
/** The clusters of ledgers, in the chart's own words. */
const CLUSTERS = ['tollgate-east-1', 'tollgate-main']

const g = testGateway({ env: { TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN } })

/** The program, or why there is none. */
async function tool(t: TestContext, module: string): Promise<string | undefined> {
  const made = await goTool(module)
  if ('program' in made) return made.program
  console.log(`${module} was not tried: ${made.missing}`)
  t.skip(made.missing)
  return undefined
}

test('the chart passes helm lint, and what it renders is what Kubernetes takes', async (t) => {
  const helm = await tool(t, HELM)
  if (!helm) return
  const run = (args: readonly string[]) => runProgram(helm, args)
  const lint = await run(['lint', '--strict', CHART, ...IMAGE])
  assert.equal(lint.code, 0, lint.out + lint.err)
  const schemas = await pythonWith(join(import.meta.dirname, 'python/kubernetes-schemas.txt'))
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-chart-'))
  try {
    for (const more of [[], ALL]) {
      const rendered = await run(['template', 'tollgate', CHART, ...IMAGE, ...more])
      assert.equal(rendered.code, 0, rendered.err)
      assert.doesNotMatch(rendered.out, /<nil>|<no value>/)
      assert.equal(/kind: HorizontalPodAutoscaler/.test(rendered.out), more.length > 0)
      assert.match(rendered.out, /kind: PodDisruptionBudget/)
      const clusters = rendered.out.matchAll(/kind: Cluster\nmetadata:\n {2}name: (\S+)/g)
      assert.deepEqual(
        Array.from(clusters, ([, name]) => name),
        more.length > 0 ? CLUSTERS : [],
      )
      const [, ledgers] = /- name: TOLLGATE_LEDGERS\n +value: (.+)/.exec(rendered.out) ?? []
      assert.equal(ledgers, more.length > 0 ? '"east-1=$(POSTGRES_EAST_1) main@eu=$(POSTGRES_MAIN)"' : undefined)
      if ('missing' in schemas) {
        t.diagnostic(`the schemas of Kubernetes were not tried: ${schemas.missing}`)
        continue
      }
      const file = join(folder, 'rendered.yaml')
      // The kinds of the operators of Prometheus and CloudNativePG are in no schema of Kubernetes.
      const own = rendered.out.split(/^---$/m).filter((one) => !/^kind: (?:ServiceMonitor|Cluster)$/m.test(one))
      const validate = async (text: string) => {
        await writeFile(file, text)
        return runProgram(schemas.python, ['-m', 'kubernetes_validate', '--strict', '-k', '1.37.0', file])
      }
      const { out, err } = await validate(own.join('---'))
      assert.doesNotMatch(out + err, /did not validate|ERROR|WARN/)
      assert.ok([...(out + err).matchAll(/passed for resource/g)].length >= (more.length > 0 ? 7 : 4), out + err)
      const bent = await validate(own.join('---').replace('terminationGracePeriodSeconds', 'terminationGracePeriod'))
      assert.match(bent.out + bent.err, /did not validate/)
    }
    for (const [wrong, said] of [
      ['settings.TOLLGATE_DRAIN_SECOND=1', /TOLLGATE_DRAIN_SECOND/],
      ['settings.TOLLGATE_OPERATOR_TOKEN=x', /TOLLGATE_OPERATOR_TOKEN/],
      ['image.digest=latest', /digest/],
      ['existingSecret=', /existingSecret is needed/],
      ['ledgers[0].name=control', /ledgers/],
      ['ledgers[0].name=east', /storage/],
    ] as const) {
      const refused = await run(['template', 'tollgate', CHART, ...IMAGE, '--set', wrong])
      assert.notEqual(refused.code, 0, wrong)
      assert.match(refused.err, said)
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('the Terraform module is valid, makes a gateway what it says, and changes nothing the second time', async (t) => {
  const env = {
    PATH: process.env.PATH,
    HOME: tmpdir(),
    TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN,
    CHECKPOINT_DISABLE: '1',
  }
  if ((await runProgram('terraform', ['version'], { env })).code !== 0) {
    console.log('The Terraform module was not tried: there is no terraform.')
    return t.skip('there is no terraform')
  }
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-terraform-'))
  const terraform = async (...args: string[]) => {
    const ran = await runProgram('terraform', args, { env, cwd: folder })
    assert.equal(ran.code, 0, ran.out + ran.err)
    return ran.out
  }
  try {
    await cp(join(ROOT, 'deploy/terraform'), join(folder, 'module'), { recursive: true })
    const use = {
      module: {
        tollgate: {
          source: './module',
          url: g.url,
          command: `${process.execPath} ${join(ROOT, 'bin/tollgate.js')}`,
          configuration: { tollgate: 1, accounts: [{ name: 'By Terraform', limits: { requestsPerMinute: 7 } }] },
        },
      },
    }
    await writeFile(join(folder, 'main.tf.json'), JSON.stringify(use))
    await terraform('fmt', '-check', 'module')
    await terraform('init', '-no-color')
    await terraform('validate', '-no-color')
    await terraform('apply', '-auto-approve', '-no-color')
    const { data } = await g.operator<Page<{ name: string }>>('GET', '/accounts')
    assert.deepEqual(pluck(data.items, 'name'), ['By Terraform'])
    assert.match(await terraform('apply', '-auto-approve', '-no-color'), /No changes/)
    const { out } = await runProgram('cat', [join(folder, 'terraform.tfstate')])
    assert.doesNotMatch(out, new RegExp(OPERATOR_TOKEN))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
