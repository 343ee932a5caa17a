import { randomBytes } from "node:crypto";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import {
  type Answer,
  basic,
  codeFor,
  createApp,
  type Fields,
  formOf,
  isAcceptedByApi,
  postAsClient,
  redeemCode,
  refresh,
  runCodeFlow,
  VERIFIER,
} from "../../harness/clients/oauth.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { freePort } from "../../harness/port.ts";
import { addressOf, startServer } from "../../harness/program.ts";
import { bearer, startTestService } from "../../harness/service.ts";

export const databases = "all";
export const stage = "processes";

const database = await createTestDatabase();
const shared = { DATABASE_URL: database.url, ENCRYPTION_KEY: randomBytes(32).toString("base64url") };
const service = await startTestService(shared);
const port = await freePort();
// Both have the same base URL, like two processes behind a proxy; each has its own port.
const second = startServer({
  settings: { ...shared, BASE_URL: service.url, PORT: String(port), RATE_LIMIT: "off" },
});
await addressOf(second);
const { app, user } = await createApp(service);
const browser = new TestBrowser(service.url);
test.after.always(async () => {
  await second.stop();
  await service.close();
  await database.drop();
});

const host = new URL(service.url).host;

async function send(
  method: string,
  to: string,
  headers: Record<string, string>,
  fields?: Fields,
): Promise<Answer> {
  const answer = await sendRaw(`http://127.0.0.1:${port}`, to, {
    method,
    headers: Object.entries({
      host,
      ...headers,
      ...(fields && { "content-type": "application/x-www-form-urlencoded" }),
    }).flat(),
    ...(fields && { body: formOf(fields).toString() }),
  });
  return { ...answer, headers: new Headers(), body: answer.text ? JSON.parse(answer.text) : {} };
}

const askSecond = (endpoint: string, fields: Fields) =>
  send("POST", `/oauth/${endpoint}`, basic(app), fields);

const isAcceptedBySecond = async (token: string) =>
  (await send("GET", "/v1/organization", bearer(token))).status === 200;

test.serial(
  "concurrent redemptions at two processes succeed exactly once, with tokens that both accept",
  async (t) => {
    for (let round = 0; round < 20; round++) {
      const code = await codeFor(service, app, user, { browser });
      const fields = {
        grant_type: "authorization_code",
        code,
        redirect_uri: REDIRECT_URI,
        code_verifier: VERIFIER,
      };
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          index % 2 ? askSecond("token", fields) : redeemCode(service, app, code),
        ),
      );
      const [winner, ...others] = answers.filter(({ status }) => status === 200);
      t.deepEqual(others, []);
      for (const answer of answers.filter((one) => one !== winner)) {
        t.is(answer.status, 400);
        t.is(answer.body.error, "invalid_grant");
      }
      const token = String(winner?.body.access_token);
      t.true(await isAcceptedByApi(service, token));
      t.true(await isAcceptedBySecond(token));
    }
  },
);

test.serial("a process refreshes and introspects tokens that another one issued", async (t) => {
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user, { browser });
  t.true((await askSecond("introspect", { token: accessToken })).body.active as boolean);
  const { status, body } = await askSecond("token", {
    grant_type: "refresh_token",
    refresh_token: refreshToken,
  });
  t.is(status, 200);
  t.true(await isAcceptedByApi(service, body.access_token));
});

test.serial("a token revoked at one process is rejected by the other's next response", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { accessToken, refreshToken } = await runCodeFlow(service, app, user, { browser });
    t.true(await isAcceptedBySecond(accessToken));
    t.is((await postAsClient(service, "revoke", app, { token: refreshToken })).status, 200);
    t.false(await isAcceptedBySecond(accessToken));
    const later = await runCodeFlow(service, app, user, { browser });
    t.is((await askSecond("revoke", { token: later.accessToken })).status, 200);
    t.false(await isAcceptedByApi(service, later.accessToken));
    t.is((await refresh(service, app, later.refreshToken)).body.error, "invalid_grant");
  }
});

test.serial("a downgrade at one process takes effect at the other", async (t) => {
  const { accessToken } = await runCodeFlow(service, app, user, { browser });
  t.true(await isAcceptedBySecond(accessToken));
  await service.storage.organizations.setPlan(app.id, "free", OPERATOR);
  t.false(await isAcceptedBySecond(accessToken));
  t.is((await askSecond("token", { grant_type: "client_credentials" })).body.error, "unauthorized_client");
  await service.storage.organizations.setPlan(app.id, "growth", OPERATOR);
  t.true(await isAcceptedBySecond(accessToken));
});

test.serial("both processes name the same issuer in their metadata", async (t) => {
  const { body } = await send("GET", "/.well-known/oauth-authorization-server", {});
  t.is(body.issuer, service.url);
  t.is(body.token_endpoint, `${service.url}/oauth/token`);
});
