// Teams and projects of an account.
import * as z from 'zod'
import type { Teams } from '../../admission/teams.ts'
import { teamView } from '../../admission/views.ts'
import { page } from '../../kernel/view.ts'
import { id, type Resource, resource, text } from '../resource.ts'

const name = text(100)

export function teamResources({ teams }: { teams: Teams }): Resource[] {
  return [
    resource('GET /accounts/{id}/teams', 'teams:read', {
      answer: page(teamView),
      run: async ({ params }) => ({ items: await teams.list(params.id), next: null }),
    }),
    resource('POST /accounts/{id}/teams', 'teams:write', {
      // With a parent it is a project of that team.
      body: z.strictObject({ name, parentId: id.nullable().default(null) }),
      answer: teamView,
      run: ({ params, body, by }) => teams.create(params.id, body, by),
    }),
    resource('PATCH /accounts/{id}/teams/{teamId}', 'teams:write', {
      body: z.strictObject({ name: name.optional(), scimGroup: text(254).nullable().optional() }),
      answer: teamView,
      run: ({ params, body, by }) => teams.change(params.id, params.teamId, body, by),
    }),
    resource('DELETE /accounts/{id}/teams/{teamId}', 'teams:write', {
      answer: teamView,
      run: ({ params, by }) => teams.remove(params.id, params.teamId, by),
    }),
    resource('PUT /accounts/{id}/teams/{teamId}/members', 'teams:write', {
      body: z.strictObject({ userIds: z.array(id).max(1_000) }),
      answer: teamView,
      run: ({ params, body, by }) => teams.setMembers(params.id, params.teamId, body.userIds, by),
    }),
  ]
}
