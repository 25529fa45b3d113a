// Named filters and prompts that a person saved on a page of the console. They are private to the person and available
// in every browser.
import { type Database, sql } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import type { SavedView } from './views.ts'

/** Per person, for all pages together. */
const VIEWS_MAX = 200

export async function listViews(database: Database, person: string, page: string): Promise<SavedView[]> {
  return database.query<SavedView>(LIST, [person, page])
}

/** Replaces a view of the same name. */
export async function saveView(
  database: Database,
  person: string,
  page: string,
  { name, query }: SavedView,
): Promise<void> {
  const saved = await database.query(SAVE, [person, page, name, query, VIEWS_MAX])
  if (saved.length === 0)
    throw new Fault('conflict', { message: `You have saved ${VIEWS_MAX} views and prompts already. Delete one first.` })
}

/** Returns false if there is no view of this name. */
export async function deleteView(database: Database, person: string, page: string, name: string): Promise<boolean> {
  return (await database.query(DELETE, [person, page, name])).length > 0
}

const LIST = sql('saved_view_list')`
  select name, query from saved_view where person_id = $1 and page = $2 order by lower(name), name`
const SAVE = sql('saved_view_save')`insert into saved_view (person_id, page, name, query)
   select $1, $2, $3, $4 where (select count(*) from saved_view where person_id = $1 and (page, name) <> ($2, $3)) < $5
   on conflict (person_id, page, name) do update set query = excluded.query returning name`
const DELETE = sql('saved_view_delete')`
  delete from saved_view where person_id = $1 and page = $2 and name = $3 returning name`
