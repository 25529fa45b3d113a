import * as z from 'zod'
import { inviteLink, setupLink } from '../../identity/link.ts'
import type { Members } from '../../identity/members.ts'
import type { People } from '../../identity/people.ts'
import { linkView, memberView, role } from '../../identity/views.ts'
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
