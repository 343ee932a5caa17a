import test from "ava";
import { newWebhookSecret } from "../../../resources/webhooks/signature.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { settingsFor } from "../../harness/inhabited.ts";
import { freePort, type Program, refusalOf, startCommand } from "../../harness/program.ts";
import { OPERATOR, startTestService, type TestOrganization } from "../../harness/service.ts";
import { startReceiver, verify } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService();
const app = await service.createOrganization();
const free = await service.createOrganization();
await service.storage.organizations.setPlan(free.id, "free", OPERATOR);

const ONE_HOUR_MS = 60 * 60 * 1000;
const OWN_SECRET = newWebhookSecret();

let count = 0;

type Settings = Record<string, string>;

function settingsOf({ clientId, clientSecret }: TestOrganization): Settings {
  return { CLIENT_ID: clientId, CLIENT_SECRET: clientSecret };
}

async function listen(settings: Settings, words: string[] = [], server = service.url) {
  const options = ["listen", "--server", server, ...words];
  const program = startCommand(options, { settings });
  await program.says(words.includes("--json") ? /^\{"server"/ : /^Listening to /);
  return program;
}

async function setUp(from = service) {
  const organization = await from.createOrganization();
  const api = apiAt(from.url, await from.token(organization));
  return { organization, api, settings: settingsOf(organization), path: `/listen-${++count}` };
}

async function interrupt(program: Program) {
  program.kill("SIGINT");
  return program.ended;
}

test.serial("events are forwarded like a webhook's requests, signed with the printed secret", async (t) => {
  const { api, settings, path } = await setUp();
  const program = await listen(settings, ["--forward", receiver.url(path)]);
  const [, secret = ""] = await program.says(/signed with (whsec_\S+)\.$/m);
  const link = await api.createLink({ title: "Zoë" });
  await api.send("DELETE", `/v1/links/${link.id}`);
  const requests = await receiver.waitFor(path, 2);
  const types = requests.map((request) => verify(request, secret).type);
  t.deepEqual(types, ["link.created", "link.deleted"]);
  t.deepEqual(requests[0]?.body.data, link);
  t.like(requests[0], { method: "POST", headers: { "content-type": "application/json" } });
  const { body } = await api.get<{ data: { id: string }[] }>("/v1/events");
  for (const [index, { id, ...payload }] of body.data.entries()) {
    t.is(requests[index]?.text, JSON.stringify(payload));
    t.is(requests[index]?.headers["webhook-id"], id);
    await program.says(new RegExp(`^\\S+Z link\\.\\w+ ${id} 204 \\(\\d+ ms\\)$`, "m"));
  }
  t.like(await interrupt(program), { code: 0, stderr: "" });
});

test.serial("--json prints a line for each event, and at the end where --after continues", async (t) => {
  const { api, settings, path } = await setUp();
  const words = ["--json", "--forward", receiver.url(path), "--types", "link.created", "link.deleted"];
  const signed = { ...settings, WEBHOOK_SECRET: OWN_SECRET };
  const first = await listen(signed, words);
  const { id } = await api.createLink();
  await api.send("PATCH", `/v1/links/${id}`, { json: { title: "New" } });
  await api.send("DELETE", `/v1/links/${id}`);
  await first.says(/"type":"link.deleted"/);
  const { code, stdout } = await interrupt(first);
  t.is(code, 0);
  const lines = stdout.trim().split("\n");
  t.is(lines.length, 4);
  const [begin, created, deleted, end] = lines.map((line) => JSON.parse(line));
  t.deepEqual(begin, { server: service.url, forward: receiver.url(path), secret: null });
  t.like(created, { type: "link.created", data: { id }, forwarded: { status: 204 } });
  t.like(deleted, { type: "link.deleted", data: { id }, forwarded: { status: 204 } });
  t.like(end, { events: 2, failed: 0 });
  for (const request of receiver.received(path)) t.truthy(verify(request, OWN_SECRET));

  const missed = await api.createLink();
  const second = await listen(signed, [...words, "--after", end.after]);
  await second.says(new RegExp(missed.id));
  t.is((await interrupt(second)).code, 0);
  t.is(receiver.received(path).length, 3);
});

test.serial("a receiver that refuses or doesn't respond gets the next event", async (t) => {
  const { api, settings, path } = await setUp();
  receiver.respond(path, (response) => {
    response.writeHead(receiver.received(path).length === 1 ? 500 : 302, { location: "/" }).end();
  });
  const program = await listen(settings, ["--forward", receiver.url(path)]);
  for (const count of [1, 2]) {
    await api.createLink();
    await program.says(new RegExp(`(?: ms\\)\n[^]*){${count}}`));
  }
  const { stdout } = await interrupt(program);
  const lines = stdout.matchAll(/ evt_\w+ (.+) \(\d+ ms\)$/gm);
  const outcomes = Array.from(lines, ([, outcome]) => outcome);
  t.deepEqual(outcomes, ["500", "302"]);
  t.regex(stdout, /Stopped after 2 events, 2 not accepted\./);

  const unused = `http://127.0.0.1:${await freePort()}/`;
  const unanswered = await listen(settings, ["--forward", unused]);
  await api.createLink();
  await unanswered.says(/evt_\w+ The connection was refused\. /);
  t.is((await interrupt(unanswered)).code, 0);
});

test.serial("the command waits for a server that restarts, says so, and misses no event", async (t) => {
  const database = await createTestDatabase();
  const server = await settingsFor(database.url);
  const before = await startTestService(server);
  const { organization, settings } = await setUp(before);
  const program = await listen(settings, [], before.url);
  await before.close();
  await program.says(/did not respond \(ECONNREFUSED\)\. Trying again in \d+ s\./, "stderr");
  const after = await startTestService(server);
  const api = apiAt(after.url, await after.token(organization));
  await api.createLink();
  await program.says(/^\S+Z link\.created evt_\w+$/m);
  await program.says(/^Connected again\.$/m, "stderr");
  t.is((await interrupt(program)).code, 0);
  await after.close();
});

test.serial("over the rate limit, the command waits as long as the server asks", async (t) => {
  const limited = await startTestService({ RATE_LIMIT: "on" });
  const { api, settings } = await setUp(limited);
  const program = await listen(settings, [], limited.url);
  const said = program.says(/responded with 429\. Trying again in (\d+) s\./, "stderr");
  let isWaiting = false;
  const stopAsking = () => (isWaiting = true);
  said.then(stopAsking, stopAsking);
  const asked = new Set<string | null>();
  while (!isWaiting) asked.add((await api.get("/v1/events?limit=1")).headers.get("retry-after"));
  const [, seconds = ""] = await said;
  t.true(asked.has(seconds), `${seconds} of ${[...asked]}`);
  t.is((await interrupt(program)).code, 0);
});

const valid = settingsOf(app);
const REFUSALS: [settings: Settings, words: string[], code: string, message: RegExp][] = [
  [{}, [], "missing_credentials", /^CLIENT_ID is missing\./],
  [{ CLIENT_ID: "x" }, [], "missing_credentials", /^CLIENT_SECRET is missing\./],
  [{ ...valid, CLIENT_SECRET: "lgs_x" }, [], "invalid_client", /./],
  [settingsOf(free), [], "unauthorized_client", /./],
  [valid, ["--server", "links.example"], "invalid_server", /^--server must be /],
  [valid, ["--forward", "8080"], "invalid_forward", /^--forward must be /],
  [{ ...valid, WEBHOOK_SECRET: "whsec_x" }, [], "invalid_secret", /^WEBHOOK_SECRET must be /],
  [valid, ["--types", "link"], "invalid_type", /must be one of link\.created/],
  [valid, ["--after", "x"], "invalid_cursor", /^cursor must be a cursor of this list/],
];

test.serial("what the command refuses has a code and a reason", async (t) => {
  await Promise.all(
    REFUSALS.map(async ([settings, words, code, message]) => {
      const error = await refusalOf(["listen", "--server", service.url, ...words], { settings });
      t.is(error.code, code);
      t.regex(error.message, message);
    }),
  );
});

// Advances the clock, so it is the last one.
test.serial("an expired token is replaced", async (t) => {
  const own = await startTestService();
  const { organization, settings } = await setUp(own);
  const program = await listen(settings, [], own.url);
  advanceClock(2 * ONE_HOUR_MS);
  await apiAt(own.url, await own.token(organization)).createLink();
  await program.says(/link\.created/);
  t.is((await interrupt(program)).stderr, "");
});
