import * as z from 'zod'
import { inviteLink, setupLink } from '../../identity/link.ts'
import type { Members } from '../../identity/members.ts'
import type { People } from '../../identity/people.ts'
import { linkView, memberView, operatorView, pendingInvite, role } from '../../identity/views.ts'
import { page } from '../../kernel/view.ts'
import { email } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'

export interface MemberDeps {
  readonly members: Members
  readonly people: People
  /** The address that people reach the gateway at, without a slash at its end. */
  readonly publicUrl: () => string
}

export function memberResources({ members, people, publicUrl }: MemberDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/members', 'owner', {
      answer: page(memberView),
      run: async ({ params }) => ({ items: await members.list(params.id), next: null }),
    }),
    resource('POST /accounts/{id}/invites', 'owner', {
      body: z.strictObject({ email, role }),
      answer: linkView,
      run: async ({ params, body, by }) => ({
        link: inviteLink(publicUrl(), await members.invite(params.id, body, by)),
      }),
    }),
    resource('DELETE /accounts/{id}/members/{userId}', 'owner', {
      answer: z.object({ removed: z.string() }),
      async run({ params, actor, by }) {
        await members.remove(params.id, params.userId, { mayRemoveLastOwner: actor.operator }, by)
        return { removed: params.userId }
      },
    }),
    resource('PATCH /accounts/{id}/members/{userId}', 'owner', {
      body: z.strictObject({ role }),
      answer: z.object({ userId: z.string(), role }),
      async run({ params, body, actor, by }) {
        const input = { role: body.role, mayRemoveLastOwner: actor.operator }
        await members.changeRole(params.id, params.userId, input, by)
        return { userId: params.userId, role: body.role }
      },
    }),
    resource('GET /accounts/{id}/invites', 'owner', {
      answer: page(pendingInvite),
      run: async ({ params }) => ({ items: await members.pending(params.id), next: null }),
    }),
    resource('DELETE /accounts/{id}/invites/{inviteId}', 'owner', {
      answer: z.object({ withdrawn: z.string() }),
      async run({ params, by }) {
        await members.withdraw(params.id, params.inviteId, by)
        return { withdrawn: params.inviteId }
      },
    }),
    ...operatorResources(members, publicUrl),
    resource('POST /setup-link', 'operator', {
      answer: linkView,
      run: async ({ by }) => ({ link: setupLink(publicUrl(), await people.renewSetup(by)) }),
    }),
    resource('POST /password-link', 'operator', {
      body: z.strictObject({ email }),
      answer: linkView,
      run: async ({ body, by }) => ({ link: inviteLink(publicUrl(), await members.resetPassword(body.email, by)) }),
    }),
  ]
}

/** Those who run the gateway. */
function operatorResources(members: Members, publicUrl: () => string): Resource[] {
  return [
    resource('GET /operators', 'operator', {
      answer: page(operatorView),
      run: async () => ({ items: await members.operators(), next: null }),
    }),
    resource('DELETE /operators/{userId}', 'operator', {
      answer: z.object({ removed: z.string() }),
      async run({ params, by }) {
        await members.removeOperator(params.userId, by)
        return { removed: params.userId }
      },
    }),
    resource('GET /operator-invites', 'operator', {
      answer: page(pendingInvite),
      run: async () => ({ items: await members.pending(null), next: null }),
    }),
    resource('POST /operator-invites', 'operator', {
      body: z.strictObject({ email }),
      answer: linkView,
      run: async ({ body, by }) => ({ link: inviteLink(publicUrl(), await members.inviteOperator(body.email, by)) }),
    }),
    resource('DELETE /operator-invites/{inviteId}', 'operator', {
      answer: z.object({ withdrawn: z.string() }),
      async run({ params, by }) {
        await members.withdraw(null, params.inviteId, by)
        return { withdrawn: params.inviteId }
      },
    }),
  ]
}
