import { randomBytes } from "node:crypto";
import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import { createTestDatabase } from "../harness/database.ts";
import { REDIRECT_URI } from "../harness/flow.ts";
import {
  type Answer,
  ask,
  basic,
  codeFor,
  createApp,
  type Fields,
  formOf,
  newTokens,
  opensApi,
  redeemCode,
  refresh,
  VERIFIER,
} from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { freePort } from "../harness/port.ts";
import { addressOf, startServer } from "../harness/program.ts";
import { sendRaw } from "../harness/raw.ts";
import { bearer, startTestService } from "../harness/service.ts";

const database = await createTestDatabase();
const shared = { DATABASE_URL: database.url, ENCRYPTION_KEY: randomBytes(32).toString("base64url") };
const service = await startTestService(shared);
const port = await freePort();
// Behind one address, as two processes behind a proxy are; each is reached at its own port.
const second = startServer({
  settings: { ...shared, BASE_URL: service.url, PORT: String(port), RATE_LIMIT: "off" },
});
await addressOf(second);
const { app, user } = await createApp(service);
const person = new Person(service.url);
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

const opensSecond = async (token: string) =>
  (await send("GET", "/v1/organization", bearer(token))).status === 200;

test.serial(
  "sec 38: of 20 redemptions at two processes at once exactly one gets tokens, and they live at both",
  async (t) => {
    for (let round = 0; round < 20; round++) {
      const code = await codeFor(service, app, user, { person });
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
      t.true(await opensApi(service, token));
      t.true(await opensSecond(token));
    }
  },
);

test.serial("sec 38: what one process issued the other one refreshes and introspects", async (t) => {
  const { accessToken, refreshToken } = await newTokens(service, app, user, { person });
  t.true((await askSecond("introspect", { token: accessToken })).body.active as boolean);
  const { status, body } = await askSecond("token", {
    grant_type: "refresh_token",
    refresh_token: refreshToken,
  });
  t.is(status, 200);
  t.true(await opensApi(service, body.access_token));
});

test.serial("sec 76: what is revoked at one process is refused by the other one's next answer", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { accessToken, refreshToken } = await newTokens(service, app, user, { person });
    t.true(await opensSecond(accessToken));
    t.is((await ask(service, "revoke", app, { token: refreshToken })).status, 200);
    t.false(await opensSecond(accessToken));
    const later = await newTokens(service, app, user, { person });
    t.is((await askSecond("revoke", { token: later.accessToken })).status, 200);
    t.false(await opensApi(service, later.accessToken));
    t.is((await refresh(service, app, later.refreshToken)).body.error, "invalid_grant");
  }
});

test.serial("sec 60: a plan that ends at one process ends at the other", async (t) => {
  const { accessToken } = await newTokens(service, app, user, { person });
  t.true(await opensSecond(accessToken));
  await service.storage.organizations.setPlan(app.id, "free", OPERATOR);
  t.false(await opensSecond(accessToken));
  t.is((await askSecond("token", { grant_type: "client_credentials" })).body.error, "unauthorized_client");
  await service.storage.organizations.setPlan(app.id, "growth", OPERATOR);
  t.true(await opensSecond(accessToken));
});

test.serial("sec 3: the second process, too, names the one address in its metadata", async (t) => {
  const { body } = await send("GET", "/.well-known/oauth-authorization-server", {});
  t.is(body.issuer, service.url);
  t.is(body.token_endpoint, `${service.url}/oauth/token`);
});
