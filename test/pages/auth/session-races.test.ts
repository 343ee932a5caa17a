import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { sendForm } from "../../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { firstPartyToken } from "../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { isSignedIn } from "../../harness/clients/visits.ts";
import { startWithStorage } from "../../harness/database/service-storage.ts";
import { OPERATOR, postForm, type TestUser } from "../../harness/service.ts";

export const stage = "long";
export const databases = "all";

// The other one is as of another process.
const { service, second: other } = await startWithStorage();

const ACCOUNT = "/dashboard/account";

const CHANGES: Record<string, (user: TestUser, new_password: string) => Promise<() => Promise<number>>> = {
  async "is changed"(user, new_password) {
    const api = apiAt(service.url, await firstPartyToken(service, user));
    const json = { current_password: user.password, new_password };
    return async () => (await api.send("POST", `${ACCOUNT}/password`, { json })).status;
  },
  async "is set by a link"(user, password) {
    const link = await service.storage.accounts.createResetToken(user.id, 60_000);
    const url = `${service.url}/auth/reset-password/${link}`;
    return async () => (await postForm(url, { password })).status;
  },
};

/** Signs in with the old password; returns a function that checks whether the result is still valid. */
async function intrude({ username, password }: TestUser): Promise<() => Promise<boolean>> {
  const form = { username, password };
  const json = await postForm(`${service.url}/auth/login`, form);
  const token = json.ok ? ((await json.json()) as { access_token: string }).access_token : "";
  const browser = new TestBrowser(service.url);
  await browser.open(`${service.url}/auth/login`, { method: "POST", body: new URLSearchParams(form) });
  return async () => {
    const { status } = await apiAt(service.url, token || "none").send("GET", "/dashboard/me");
    return status === 200 || (await isSignedIn(service, browser));
  };
}

for (const [what, change] of Object.entries(CHANGES)) {
  // Only a few passwords are verified concurrently: queued requests have already read the old hash.
  test.serial(`a sign-in with the old password while it ${what} ends up signed out`, async (t) => {
    for (let round = 0; round < 3; round++) {
      const user = await service.createUser([]);
      const set = await change(user, `another password ${round}`);
      const before = Array.from({ length: 6 }, () => intrude(user));
      const changing = set();
      const after = Array.from({ length: 6 }, () => intrude(user));
      t.true([200, 204].includes(await changing));
      for (const isIn of await Promise.all([...before, ...after])) t.false(await isIn());
    }
  });

  test.serial(`a pending sign-in of an authorization is invalid after the password ${what}`, async (t) => {
    const { app, user } = await createApp(service);
    const set = await change(user, "another password");
    const browser = new TestBrowser(service.url);
    const page = await browser.open(authorizeUrl(service, app));
    const { username, password } = user;
    const answer = await sendForm(browser, page, { username, password });
    t.is(answer.status, 303);
    t.true([200, 204].includes(await set()));
    const late = await browser.open(new URL(answer.headers.get("location") ?? "", page.url).href);
    t.falsy(/Allow .* to /.test(late.text));
    t.false(await isSignedIn(service, browser));
  });
}

test.serial("a password change that started before a reset by link doesn't overwrite it", async (t) => {
  const { accounts } = service.storage;
  const user = await service.createUser([]);
  const change = await (CHANGES["is changed"] as (typeof CHANGES)[string])(user, "the intruder's password");
  const link = await accounts.createResetToken(user.id, 60_000);
  const { changePassword } = accounts;
  t.teardown(() => Object.assign(accounts, { changePassword }));
  Object.assign(accounts, {
    async changePassword(...change: Parameters<typeof changePassword>) {
      t.true(await accounts.resetPassword(link, "the owner's hash"));
      return changePassword(...change);
    },
  });
  t.is(await change(), 422);
  t.is((await accounts.find(user.id))?.passwordHash, "the owner's hash");
});

for (const [index, kind] of ["token", "session"].entries())
  test.serial(`a user disabled during a sign-in gets no ${kind} that works once enabled`, async (t) => {
    const { accounts, disabledAccounts } = service.storage;
    const user = await service.createUser([]);
    const { findByUsername } = accounts;
    t.teardown(() => Object.assign(accounts, { findByUsername }));
    let lookups = 0;
    Object.assign(accounts, {
      async findByUsername(username: string) {
        const account = await findByUsername(username);
        // `intrude` signs in for a token, and then for a session.
        if (lookups++ === index) await disabledAccounts.disable(user.id, null, OPERATOR);
        else await disabledAccounts.enable(user.id, OPERATOR);
        return account;
      },
    });
    const isIn = await intrude(user);
    t.true(lookups > index);
    await disabledAccounts.enable(user.id, OPERATOR);
    t.false(await isIn());
  });

const ENDS: Record<string, (id: string, uid: string) => Promise<unknown>> = {
  "signs out of it": (id, uid) => other.sessions.signOut(id, uid),
  "signs the user out": (id) => other.disabledAccounts.signOut(id, { apps: false }, OPERATOR),
  async "disables the user"(id) {
    await other.disabledAccounts.disable(id, null, OPERATOR);
    await other.disabledAccounts.enable(id, OPERATOR);
  },
};

for (const [what, end] of Object.entries(ENDS))
  test.serial(`a session that gets a new ID while another process ${what} isn't revived`, async (t) => {
    const sessions = service.storage.oidcAdapter("Session");
    for (let count = 1; ; count++) {
      const { id: accountId } = await service.createUser([]);
      const session = { uid: `${accountId}-${count}`, accountId, kind: "Session" };
      const [id, newId] = [`old-${accountId}`, `new-${accountId}`];
      await sessions.upsert(id, session, 600);
      let seen = 0;
      let ended: Promise<unknown> | undefined;
      const stop = service.onStatement(() => {
        if (++seen === count) ended = end(accountId, session.uid);
      });
      await sessions.upsert(newId, { ...session, replaces: id }, 600);
      stop();
      if (!ended) break;
      await ended;
      t.is(await sessions.find(newId), undefined, `after statement ${count}`);
    }
  });
