// OpenAI's and Anthropic's SDKs for Java with their defaults.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { assert, type TestContext, test, testGateway } from '../gateway.ts'
import { mavenJars, runProgram } from '../sdk/cache.ts'
import { openAllDoors } from '../sdk/families.ts'

let key: string
const g = testGateway({ catalog: openAllDoors }, async () => {
  key = (await g.account({ credits: 100_000_000_000n })).key
})

/** The lines that a program of one file prints; undefined where the library cannot be installed. */
async function run(t: TestContext, artifact: string, name: string, program: string): Promise<string[] | undefined> {
  const jars = await mavenJars(artifact)
  if ('missing' in jars) {
    console.log(`${artifact} was not tested: ${jars.missing}`)
    t.skip(jars.missing)
    return undefined
  }
  const file = join(g.config.TOLLGATE_DATA, `${name}.java`)
  await writeFile(file, program)
  const ran = await runProgram('java', ['-cp', join(jars.directory, 'jars', '*'), file], {
    env: { PATH: process.env.PATH, HOME: g.config.TOLLGATE_DATA, GATEWAY: g.url, GATEWAY_KEY: key },
    timeoutMs: 240_000,
  })
  assert.equal(ran.code, 0, `${ran.out}\n${ran.err}`.slice(-4_000))
  return ran.out.trim().split('\n')
}

const OPENAI = `import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.errors.NotFoundException;
import com.openai.models.chat.completions.*;
import com.openai.models.responses.*;
import java.util.stream.Collectors;

public class OpenAiProgram {
  public static void main(String[] args) {
    OpenAIClient client = OpenAIOkHttpClient.builder()
      .apiKey(System.getenv("GATEWAY_KEY")).baseUrl(System.getenv("GATEWAY") + "/v1").maxRetries(0).build();
    for (String model : new String[] {"alpha-5.4", "beta-sonnet-4-6"}) {
      var ask = ChatCompletionCreateParams.builder().model(model).addUserMessage("Say hello.").build();
      ChatCompletion whole = client.chat().completions().create(ask).validate();
      System.out.println("chat " + whole.choices().get(0).message().content().get().length() + " " + whole.usage().get().totalTokens());
      try (var stream = client.chat().completions().createStreaming(ask)) {
        String said = stream.stream().flatMap(chunk -> chunk.validate().choices().stream())
          .flatMap(choice -> choice.delta().content().stream()).collect(Collectors.joining());
        System.out.println("chat-stream " + said.length());
      }
      var respond = ResponseCreateParams.builder().model(model).input("Say hello.").build();
      Response response = client.responses().create(respond).validate();
      System.out.println("response " + response.output().size() + " " + response.usage().get().outputTokens());
      try (var stream = client.responses().createStreaming(respond)) {
        long done = stream.stream().filter(event -> event.validate().isCompleted()).count();
        System.out.println("response-stream " + done);
      }
    }
    try {
      client.chat().completions().create(ChatCompletionCreateParams.builder().model("nope").addUserMessage("x").build());
    } catch (NotFoundException error) {
      System.out.println("missing " + error.statusCode());
    }
    System.exit(0);
  }
}
`

test('OpenAI’s SDK for Java reads answers, streams and errors', async (t) => {
  const lines = await run(t, 'com.openai:openai-java:4.96.0', 'OpenAiProgram', OPENAI)
  if (lines === undefined) return
  const both = ['chat', 'chat-stream', 'response', 'response-stream']
  assert.deepEqual(lines.map((line) => line.split(' ')[0]).slice(-9), [...both, ...both, 'missing'])
  for (const line of lines.slice(-9)) assert.doesNotMatch(line, / 0( |$)/)
})

const ANTHROPIC = `import com.anthropic.client.AnthropicClient;
import com.anthropic.client.okhttp.AnthropicOkHttpClient;
import com.anthropic.errors.NotFoundException;
import com.anthropic.models.messages.*;
import java.util.stream.Collectors;

public class AnthropicProgram {
  public static void main(String[] args) {
    AnthropicClient client = AnthropicOkHttpClient.builder()
      .apiKey(System.getenv("GATEWAY_KEY")).baseUrl(System.getenv("GATEWAY") + "/beta").maxRetries(0).build();
    var ask = MessageCreateParams.builder().model("beta-sonnet-4-6").maxTokens(500).addUserMessage("Say hello.");
    Message whole = client.messages().create(ask.build()).validate();
    System.out.println("message " + whole.content().get(0).text().get().text().length() + " " + whole.usage().outputTokens());
    try (var stream = client.messages().createStreaming(ask.build())) {
      String said = stream.stream().flatMap(event -> event.validate().contentBlockDelta().stream())
        .flatMap(event -> event.delta().text().stream()).map(TextDelta::text).collect(Collectors.joining());
      System.out.println("message-stream " + said.length());
    }
    try {
      client.messages().create(ask.model("nope").build());
    } catch (NotFoundException error) {
      System.out.println("missing " + error.statusCode());
    }
    System.exit(0);
  }
}
`

test('Anthropic’s SDK for Java reads answers, streams and errors', async (t) => {
  const lines = await run(t, 'com.anthropic:anthropic-java:3.10.0', 'AnthropicProgram', ANTHROPIC)
  if (lines === undefined) return
  assert.deepEqual(lines.map((line) => line.split(' ')[0]).slice(-3), ['message', 'message-stream', 'missing'])
  for (const line of lines.slice(-3)) assert.doesNotMatch(line, / 0( |$)/)
})
