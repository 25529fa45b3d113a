// Teams and projects of an account.
import * as z from 'zod'
import type { Teams } from '../../admission/teams.ts'
import { teamView } from '../../admission/views.ts'
import { page } from '../../kernel/view.ts'
import { id, type Resource, resource, text } from '../resource.ts'

const name = text(100).describe('A new name')
const group = text(254).meta({
  description: 'The group, named as in the directory; without it the members stay',
  option: 'group',
})
const parent = id.meta({
  description: 'The team of a project',
  option: 'parent',
  value: 'team',
  refersTo: '/accounts/{id}/teams',
})

export function teamResources({ teams }: { teams: Teams }): Resource[] {
  return [
    resource('GET /accounts/{id}/teams', 'teams:read', {
      title: 'List teams and projects',
      answer: page(teamView),
      run: async ({ params }) => ({ items: await teams.list(params.id), next: null }),
    }),
    resource('POST /accounts/{id}/teams', 'teams:write', {
      title: 'Create a team or project',
      // With a parent it is a project of that team.
      body: z.strictObject({ name, parentId: parent.nullable().default(null) }),
      answer: teamView,
      run: ({ params, body, by }) => teams.create(params.id, body, by),
    }),
    resource('PATCH /accounts/{id}/teams/{teamId}', 'teams:write', {
      title: 'Rename a team or project',
      body: z.strictObject({ name: name.optional(), scimGroup: group.nullable().optional() }),
      answer: teamView,
      run: ({ params, body, by }) => teams.change(params.id, params.teamId, body, by),
    }),
    resource('DELETE /accounts/{id}/teams/{teamId}', 'teams:write', {
      title: 'Remove a team or project',
      answer: teamView,
      run: ({ params, by }) => teams.remove(params.id, params.teamId, by),
    }),
    resource('PUT /accounts/{id}/teams/{teamId}/members', 'teams:write', {
      title: 'Set who is in a team',
      body: z.strictObject({
        userIds: z.array(id).max(1_000).meta({ option: 'people', none: 'none', refersTo: '/accounts/{id}/members' }),
      }),
      answer: teamView,
      run: ({ params, body, by }) => teams.setMembers(params.id, params.teamId, body.userIds, by),
    }),
  ]
}
