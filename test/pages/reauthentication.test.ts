import test from "ava";
import { apiAt, isProblem } from "../harness/clients/api.ts";
import {
  browserOf,
  createColleague,
  createTeam,
  firstPartyToken,
  openAs,
} from "../harness/clients/dashboard.ts";
import { follow } from "../harness/clients/visits.ts";
import { advanceClock, MINUTE_MS } from "../harness/clock.ts";
import { startTestService } from "../harness/service.ts";

const OLD = { status: 403, code: "reauthentication_required" };
const service = await startTestService();

const requestsIn = (text: string) =>
  text
    .trim()
    .split(/,\s+/)
    .map((request) => request.split(" ") as [method: string, path: string]);

// Serial, because each test moves the clock.
test.serial("what can hand over an organization or a secret requires a recent sign-in", async (t) => {
  const { base, owner, member } = await createTeam(service);
  const json = { url: "https://hooks.example.com/in", events: ["link.created"] };
  const { body: webhook } = await owner.api.send<{ id: string }>("POST", `${base}/webhooks`, { json });
  const { id } = webhook;
  const sensitive = requestsIn(`
    POST /client/rotate, POST /client/keys, DELETE /client/keys/key_1, DELETE /client/secrets,
    POST /client/disable, POST /client/enable, PUT /client/redirect-uris, PUT /client/profile,
    PUT /client/require-dpop, POST /webhooks/${id}/secret, POST /webhooks/${id}/rotate-secret,
    POST /workload-identity, DELETE /workload-identity/trs_1, PUT /apps/enterprise-authorization,
    POST /members/${member.id}/sign-out, POST /members/${member.id}/reset-link, PATCH /members/${member.id},
    PUT /members/require-second-factor`);
  advanceClock(11 * MINUTE_MS);
  for (const [method, path] of [...sensitive, ["DELETE", ""] as const])
    isProblem(t, await owner.api.send(method, base + path), OLD);
  for (const role of ["owner", "admin"])
    isProblem(t, await owner.api.send("POST", `${base}/invitations`, { json: { role } }), OLD);
  t.is((await owner.api.send("POST", `${base}/invitations`, { json: { role: "member" } })).status, 201);
  t.is((await owner.api.send("GET", `${base}/client`)).status, 200);
  const exported = await owner.api.send("GET", "/dashboard/account/export");
  isProblem(t, exported, OLD);
  t.is(exported.headers.get("content-disposition"), null);
  const again = apiAt(service.url, await firstPartyToken(service, owner));
  t.is((await again.send("POST", `${base}/client/rotate`, { json: {} })).status, 200);
});

test.serial("changes to how a user signs in require a sign-in within the last ten minutes", async (t) => {
  const user = await createColleague(service, undefined);
  advanceClock(11 * MINUTE_MS);
  const changes = requestsIn(`
    POST /totp, POST /totp/confirm, DELETE /totp, POST /passkeys, DELETE /passkeys/psk_1,
    POST /recovery-codes, POST /email, DELETE /email, DELETE /identities`);
  for (const [method, path] of changes)
    isProblem(t, await user.api.send(method, `/dashboard/account${path}`, { json: {} }), OLD);
});

test.serial("in a browser, the user signs in again and returns to the page", async (t) => {
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  advanceClock(11 * MINUTE_MS);
  for (const url of [`${service.url}${base}/client/rotate`, `${service.url}${base}/delete`]) {
    const back = await browser.signIn(await browser.open(url), owner);
    t.is(back.url, url);
    advanceClock(11 * MINUTE_MS);
  }
  const account = `${service.url}/dashboard/account`;
  const again = await browser.signIn(await browser.open(`${account}/export`), owner);
  t.is(again.url, account);
  const { headers } = await follow(browser, again, "Download data");
  t.regex(headers.get("content-disposition") ?? "", /^attachment/);
});

test.serial("after signing in again, a form waits for one more click, which does it once", async (t) => {
  const { base, owner, organization } = await createTeam(service);
  const { browser, page } = await openAs(service, owner, `${base}/members`);
  advanceClock(11 * MINUTE_MS);
  const entries = async () =>
    (await service.storage.audit.list(organization.id, { types: ["invitation.created"] }, 100)).length;
  const fields = { role: "admin", label: "for Anna" };
  const asked = await browser.signIn(await browser.press(page, "Create invitation link", fields), owner);
  t.is(asked.html.querySelector("h1")?.text, "Invite a member?");
  for (const value of Object.values(fields))
    t.true(asked.html.querySelector("dl")?.text.includes(value), value);
  t.is(await entries(), 0);
  t.is((await browser.open(asked.url)).status, 410, "shown once");
  t.is((await browser.press(asked, "Invite a member")).status, 200);
  t.is(await entries(), 1);
});

test.serial("a form that waits belongs to the session that sent it, and never has a secret", async (t) => {
  const { base, owner, admin, member } = await createTeam(service);
  const { browser, page: members } = await openAs(service, owner, `${base}/members`);
  const account = await browser.open(`${service.url}/dashboard/account`);
  const totp = await browser.press(account, "Set up authenticator app");
  advanceClock(11 * MINUTE_MS);
  const back = await browser.signIn(await browser.press(totp, "Confirm code", { code: "123456" }), owner);
  t.regex(back.text, /nothing has been changed. Please fill in the form once more/);
  advanceClock(11 * MINUTE_MS);
  const again = await browser.press(members, `Create reset link for ${member.username}`);
  t.is((await browser.signIn(again, admin)).status, 410);
});

test.serial("an invitation expires after seven days", async (t) => {
  const { base, owner } = await createTeam(service);
  const { body } = await owner.api.send<{ url: string }>("POST", `${base}/invitations`, { json: {} });
  const path = new URL(body.url).pathname;
  advanceClock(7 * 24 * 60 * MINUTE_MS - MINUTE_MS);
  const guest = await createColleague(service, undefined);
  t.is((await guest.api.send("GET", path)).status, 200);
  advanceClock(MINUTE_MS);
  isProblem(t, await guest.api.send("POST", path), { status: 403, code: "invitation_invalid" });
});
