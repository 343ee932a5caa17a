import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { browserOf } from "../../harness/clients/dashboard.ts";
import type { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

const database = await createTestDatabase();
const key = Buffer.alloc(32, 7);
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: key.toString("base64url"),
});
// Another process on the same database.
const other = openStorage(database.url, key);
test.after.always(async () => {
  await Promise.all([service.close(), other.close()]);
  await database.drop();
});

const ACCOUNT = `${service.url}/dashboard/account`;

/** Ways to end the sessions of a user from elsewhere. */
const ENDS: Record<string, (user: TestUser) => Promise<unknown>> = {
  "signs the user out": ({ id }) => other.accountSwitches.signOut(id, { apps: false }, OPERATOR),
  async "disables the user"({ id }) {
    await other.accountSwitches.disable(id, null, OPERATOR);
    await other.accountSwitches.enable(id, OPERATOR);
  },
};

async function isSignedIn(browser: TestBrowser): Promise<boolean> {
  return (await browser.open(ACCOUNT, { headers: { accept: "application/json" } })).status === 200;
}

for (const [what, end] of Object.entries(ENDS)) {
  test.serial(`a session that gets a new ID while another process ${what} isn't revived`, async (t) => {
    for (let count = 1; ; count++) {
      const user = await service.createUser([]);
      const { browser } = await browserOf(service, user);
      const page = await browser.open(ACCOUNT);
      let seen = 0;
      let ended: Promise<unknown> | undefined;
      const stop = service.storage.onStatement(() => {
        if (++seen === count) ended = end(user);
      });
      // Gives this session a new ID, and ends the others.
      const new_password = "an entirely new one";
      await browser.press(page, "Change password", { current_password: user.password, new_password });
      stop();
      if (!ended) break;
      await ended;
      t.false(await isSignedIn(browser), `after statement ${count}`);
    }
  });
}

test.serial("signing out ends the session, even if another tab is giving it a new ID", async (t) => {
  const { id: organizationId } = await service.createOrganization("Team");
  for (let count = 1; ; count++) {
    const user = await service.createUser([organizationId]);
    const { browser } = await browserOf(service, user);
    const page = await browser.open(ACCOUNT);
    const cookies = await browser.jar.getCookies(service.url);
    const id = cookies.find(({ key }) => key === "session")?.value as string;
    const adapter = other.oidcAdapter("Session");
    const { jti: _, ...payload } = (await adapter.find(id)) ?? {};
    const newId = `renewed-${count}`;
    let seen = 0;
    let renewal: Promise<unknown> | undefined;
    const stop = service.storage.onStatement(() => {
      if (++seen === count) renewal = adapter.upsert(newId, { ...payload, replaces: id }, 600);
    });
    const done = await browser.press(page, "Sign out");
    stop();
    if (!renewal) break;
    await renewal;
    // Refused if the session had its new ID before the request was authenticated.
    const [entry] = await service.storage.audit.list(organizationId, { types: ["member.logged_out"] }, 1);
    t.is(done.status, 200);
    if (entry?.actor === user.id) t.is(await adapter.find(newId), undefined, `after statement ${count}`);
  }
});
