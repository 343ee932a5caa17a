import test, { type ExecutionContext } from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { apiAt } from "../../../harness/clients/api.ts";
import { browserOf, createTeam, firstPartyToken } from "../../../harness/clients/dashboard.ts";
import type { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { startWithProvider } from "../../../harness/providers/identity-provider.ts";

const { provider, service, close } = await startWithProvider();
test.after.always(close);

type Team = Awaited<ReturnType<typeof createTeam>>;
type Entry = {
  type: string;
  actor: string;
  address: string | null;
  subject: string;
  summary: string;
  data: object;
};

const ACCOUNT = "/dashboard/account";
const FRESH = "an entirely new password";

/** Creates a member of two organizations who can read neither audit log. */
async function member() {
  const teams: [Team, Team] = [await createTeam(service), await createTeam(service)];
  const user = teams[0].member;
  await service.storage.organizations.addMember(teams[1].organization.id, user.id, "member", OPERATOR);
  const api = apiAt(service.url, await firstPartyToken(service, user));
  return { teams, user, api };
}

/** Asserts that each organization has one audit entry of the type, and who caused it. */
async function isRecordedOnce(t: ExecutionContext, teams: Team[], type: string, userId: string) {
  for (const { base, owner } of teams) {
    const { body } = await owner.api.send<{ data: Entry[] }>("GET", `${base}/audit?type=${type}`);
    t.is(body.data.length, 1, type);
    const [entry] = body.data;
    t.like(entry, { type, actor: userId, subject: userId });
    t.like(entry?.data, { user_id: userId });
    t.regex(entry?.address ?? "", /127\.0\.0\.1|::1/);
    t.true((entry?.summary.length ?? 0) > 10);
  }
}

async function isNotRecorded(t: ExecutionContext, teams: Team[], type: string) {
  for (const { base, owner } of teams) {
    const { body } = await owner.api.send<{ data: Entry[] }>("GET", `${base}/audit?type=${type}`);
    t.deepEqual(body.data, [], type);
  }
}

test("a password change is recorded in every organization of the user", async (t) => {
  const { teams, user, api } = await member();
  const change = (current_password: string) =>
    api.send("POST", `${ACCOUNT}/password`, { json: { current_password, new_password: FRESH } });
  t.is((await change("wrong")).status, 422);
  await isNotRecorded(t, teams, "member.password_changed");
  t.is((await change(user.password)).status, 204);
  await isRecordedOnce(t, teams, "member.password_changed", user.id);
});

test("a password set with a reset link is recorded in every organization of the user", async (t) => {
  const { teams, user } = await member();
  const token = await service.storage.accounts.createResetToken(user.id, 60_000);
  const url = `${service.url}/auth/reset-password/${token}`;
  const set = (password: string) => fetch(url, { method: "POST", body: new URLSearchParams({ password }) });
  t.is((await set("short")).status, 422);
  await isNotRecorded(t, teams, "member.password_changed");
  t.is((await set(FRESH)).status, 200);
  await isRecordedOnce(t, teams, "member.password_changed", user.id);
});

// Serial, because the test sets the identity of the provider's next sign-in.
test.serial("linking and unlinking an identity is recorded", async (t) => {
  const { teams, user } = await member();
  const { browser } = await browserOf(service, user);
  const sub = `subject of ${user.id}`;
  const link = async (browser: TestBrowser) => {
    const confirmation = await browser.press(await browser.open(service.url + ACCOUNT), "Link Example ID");
    const href = confirmation.html.querySelector("a.button")?.attributes.href ?? "";
    provider.say(({ payload }) => Object.assign(payload, { sub }));
    return browser.open(await provider.answer({ ...confirmation, url: href }));
  };
  t.is((await link(browser)).status, 200);
  await isRecordedOnce(t, teams, "member.identity_linked", user.id);
  t.is((await link(browser)).status, 200);
  await isRecordedOnce(t, teams, "member.identity_linked", user.id);

  const other = await member();
  const { browser: stranger } = await browserOf(service, other.user);
  t.is((await link(stranger)).status, 409);
  await isNotRecorded(t, other.teams, "member.identity_linked");

  const page = await browser.press(await browser.open(service.url + ACCOUNT), `Unlink ${sub}`);
  t.is(page.status, 200);
  await isRecordedOnce(t, teams, "member.identity_unlinked", user.id);
});

test("another user's identity can't be unlinked", async (t) => {
  const [{ user }, thief] = [await member(), await member()];
  const identity = { issuer: provider.issuer, subject: `of ${user.id}` };
  await service.storage.identities.link(user.id, { ...identity, label: null }, OPERATOR);
  const reply = await thief.api.send("POST", `${ACCOUNT}/identities/delete`, { json: identity });
  t.is(reply.status, 409);
  t.is(await service.storage.identities.findUserId(identity), user.id);
});
