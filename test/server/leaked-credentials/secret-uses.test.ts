import test from "ava";
import type { NewClient } from "../../../adapters/oauth/clients.ts";
import { browserOf, createTeam } from "../../harness/clients/dashboard.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService({ TRUST_PROXY: "1" });
test.after.always(() => service.close());

async function createClient() {
  const team = await createTeam(service);
  const rotate = async () =>
    (await service.storage.clients.rotateSecret(
      team.organization.id,
      { overlapMs: 3_600_000, compromised: false },
      { id: team.owner.id },
    )) as NewClient;
  return { ...team, rotate };
}

async function use({ clientId, clientSecret }: NewClient, userAgent: string, address: string): Promise<void> {
  const { status } = await postForm(
    `${service.url}/oauth/token`,
    { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret },
    { "user-agent": userAgent, "x-forwarded-for": address },
  );
  if (status !== 200) throw new Error(`no token: ${status}`);
}

type Callers = { last4: string; callers: { program: string; network: string }[] }[];

/** Waits until the uses of a client are stored, which is after the response. */
async function secretsOf(
  { owner, base }: Awaited<ReturnType<typeof createClient>>,
  count: number,
): Promise<Callers> {
  for (;;) {
    const { body } = await owner.api.get<{ secrets: Callers }>(`${base}/client`);
    if (body.secrets.flatMap(({ callers }) => callers).length === count) return body.secrets;
  }
}

test("each secret lists the programs and networks that used it, most recent first", async (t) => {
  const client = await createClient();
  const first = await client.rotate();
  await use(first, "python-requests/2.32.3", "203.0.113.7");
  await secretsOf(client, 1);
  await use(first, "python-requests/2.33.0", "203.0.113.200");
  await use(first, "curl/8.5.0", "2001:db8:1:2:3:4:5:6");
  const [secret] = await secretsOf(client, 2);
  t.is(secret?.last4, first.clientSecret.slice(-4));
  const callers = secret?.callers.map(({ program, network }) => `${program} ${network}`);
  t.deepEqual(callers, ["curl 2001:db8:1:2::/64", "python-requests 203.0.113.0/24"]);
});

test("a secret keeps its 20 most recent callers", async (t) => {
  const client = await createClient();
  const secret = await client.rotate();
  for (let index = 0; index < 24; index++) await use(secret, `program-${index}`, "203.0.113.7");
  for (;;) {
    const [stored] = await secretsOf(client, 20);
    if (stored?.callers.some(({ program }) => program === "program-23")) break;
  }
  t.pass();
});

test("during an overlap, the page says whether the previous secret is still used, and by whom", async (t) => {
  const client = await createClient();
  const { browser } = await browserOf(service, client.owner);
  const open = () => browser.open(`${service.url}${client.base}/client`);
  const previous = await client.rotate();
  const current = await client.rotate();
  await use(current, "current-program", "198.51.100.7");
  await secretsOf(client, 1);
  t.regex((await open()).text, /hasn’t been used since the rotation\. You can revoke it/);
  await use(previous, "<script>old-program", "203.0.113.7");
  await use(previous, "old-program/1.0", "203.0.113.7");
  await secretsOf(client, 3);
  const page = await open();
  t.regex(page.text, /is still in use/);
  t.regex(page.html.textContent, /old-program from 203\.0\.113\.0\/24/);
  t.false(page.text.includes("<script>old"));
});

test.serial("a caller with a new User-Agent for each request doesn't cause a write each", async (t) => {
  const client = await createClient();
  const secret = await client.rotate();
  let writes = 0;
  const stop = service.storage.onStatement((sql) => {
    if (/^update .client_secrets. set .last_used_at./.test(sql)) writes++;
  });
  t.teardown(stop);
  for (let batch = 0; batch < 15; batch++) {
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => use(secret, `agent-${batch}-${index}`, "203.0.113.7")),
    );
  }
  t.true(writes <= 60, `${writes} writes`);
});
