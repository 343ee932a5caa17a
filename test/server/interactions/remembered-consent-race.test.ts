import { setTimeout } from "node:timers/promises";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import {
  allow,
  authorizeUrl,
  createApp,
  isAcceptedByApi,
  redeemCode,
  refresh,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestStorage } from "../../harness/database/storage.ts";
import { rounds } from "../../harness/rounds.ts";
import { startTestService, type TestOrganization, type TestUser } from "../../harness/service.ts";

export const databases = "all";

// The service, and a second process that has the same database open.
const { url, encryptionKey, second, database, close } = await createTestStorage();
const service = await startTestService({
  DATABASE_URL: url,
  ENCRYPTION_KEY: Buffer.from(encryptionKey).toString("base64url"),
});
test.after.always(async () => {
  await service.close();
  await close();
});

const ROUNDS = rounds(8, 40);
const AT_ONCE = 3;

type Party = { app: TestOrganization; own: TestOrganization; user: TestUser; consentId: string };

const REVOCATIONS: [what: string, revoke: (party: Party) => Promise<unknown>][] = [
  [
    "a revocation on the apps page",
    ({ own, consentId }) => second.grants.revoke(own.id, consentId, OPERATOR),
  ],
  [
    "a compromised secret",
    ({ app }) => second.clients.rotateSecret(app.id, { overlapMs: 3600_000, compromised: true }, OPERATOR),
  ],
  [
    "the removal of the member",
    ({ own, user }) =>
      second.members.remove({
        organizationId: own.id,
        userId: user.id,
        manageableRoles: ["owner"],
        actor: OPERATOR,
      }),
  ],
];

for (const [what, revoke] of REVOCATIONS) {
  test.serial(`no authorization that is remembered during ${what} survives it`, async (t) => {
    for (let round = 0; round < ROUNDS; round++) {
      const { app, own, user } = await createApp(service);
      await service.createUser([own.id], undefined, "owner"); // another one, so the first can be removed
      const browser = new TestBrowser(service.url);
      await allow(service, user, authorizeUrl(service, app), { browser });
      const [{ id: consentId } = { id: "" }] = await second.grants.listByUser(user.id);
      const requests = Array.from({ length: AT_ONCE }, () =>
        browser.open(authorizeUrl(service, app, { prompt: "none" })),
      );
      // At a different moment of the authorization in each round.
      await setTimeout(round % 8);
      const [pages] = await Promise.all([Promise.all(requests), revoke({ app, own, user, consentId })]);

      const active = await database
        .knex("grants")
        .where({ user_id: user.id, client_id: app.clientId })
        .whereNull("revoked_at");
      t.deepEqual(active, [], `round ${round}`);
      for (const page of pages) {
        const query = new URL(page.url).searchParams;
        const code = query.get("code");
        if (code === null) {
          t.regex(String(query.get("error")), /^(consent_required|login_required)$/);
          continue;
        }
        const { status, body } = await redeemCode(service, app, code);
        if (status !== 200) continue;
        t.false(await isAcceptedByApi(service, body.access_token), `round ${round}`);
        t.is((await refresh(service, app, String(body.refresh_token))).status, 400);
      }
      const { url: end } = await browser.open(authorizeUrl(service, app, { prompt: "none" }));
      t.is(new URL(end).searchParams.get("error"), "consent_required", `round ${round}`);
    }
  });
}

test.serial("concurrent requests each get a grant of their own, under one consent", async (t) => {
  const { app, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  await allow(service, user, authorizeUrl(service, app), { browser });
  const pages = await Promise.all(Array.from({ length: 8 }, () => browser.open(authorizeUrl(service, app))));
  const codes = pages.map((page) => new URL(page.url).searchParams.get("code") ?? "");
  t.is(new Set(codes).size, 8);
  const tokens = await Promise.all(codes.map((code) => redeemCode(service, app, code)));
  t.true(tokens.every(({ status }) => status === 200));
  const grants = await database.knex("grants").where({ user_id: user.id, client_id: app.clientId });
  t.is(grants.length, 9);
  t.is(new Set(grants.map(({ consent_id }) => consent_id)).size, 1);
  t.is((await second.grants.listByUser(user.id)).length, 1);
});
