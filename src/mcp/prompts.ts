// Questions that people ask often, written so that an agent uses the right tools in the right order.
import type { PromptMessage, ServerContext } from '@modelcontextprotocol/server'

type Given = Readonly<Record<string, string>>

export interface Prompt {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly arguments: { name: string; description: string; required: boolean }[]
  readonly write: (given: Given, request: ServerContext['mcpReq']) => PromptMessage[]
}

const say = (text: string): PromptMessage[] => [{ role: 'user', content: { type: 'text', text } }]
const required = (name: string, description: string) => ({ name, description, required: true })

export const OWN_PROMPTS: readonly Prompt[] = [
  {
    name: 'compare_websites',
    title: 'Compare two websites',
    description: 'Visits, ranks, channels and engagement of two websites side by side.',
    arguments: [required('first', 'A domain, such as example.com.'), required('second', 'The other domain.')],
    write: ({ first, second }) =>
      say(
        `Compare the websites ${first} and ${second}. For both use website_visits, website_ranks, website_engagement and website_channels with the same period, then website_history_visits for the trend. Answer with one table of the figures and three sentences on what differs most. Say what the calls cost together.`,
      ),
  },
  {
    name: 'brief_handle',
    title: 'Brief me on a handle',
    description: 'Who is behind a social handle, and what they write about.',
    arguments: [required('handle', 'The user name, with or without @.')],
    write: ({ handle }) =>
      say(
        `Brief me on the social account ${handle}. Look it up with social_user_by_name and user.fields created_at,description,public_metrics,verified; then read its newest 50 posts with social_timeline and tweet.fields created_at,public_metrics, without retweets. Tell who it is, what it writes about, which posts were read most, and how often it posts.`,
      ),
  },
  {
    name: 'research_keyword',
    title: 'Research a keyword',
    description: 'Volume, difficulty and competitors of a search keyword.',
    arguments: [required('keyword', 'The keyword.')],
    write: ({ keyword }) =>
      say(
        `Research the search keyword "${keyword}". Use keyword_suggestions for related keywords with volume and difficulty, and keyword_websites for the websites that rank for it. Recommend five keywords to go for, with a reason each.`,
      ),
  },
]
