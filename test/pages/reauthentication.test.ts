import test from "ava";
import { apiAt, isProblem } from "../harness/clients/api.ts";
import { browserOf, createColleague, createTeam, firstPartyToken } from "../harness/clients/dashboard.ts";
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

test.serial("in a browser, the user signs in again and returns to the form", async (t) => {
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const url = `${service.url}${base}/client/rotate`;
  const form = await browser.open(url);
  advanceClock(11 * MINUTE_MS);
  t.truthy((await browser.press(form, "Rotate secret")).html.querySelector("#password"));
  const back = await browser.signIn(await browser.open(url), owner);
  t.is(back.url, url);
  t.is((await browser.press(back, "Rotate secret")).status, 200);
});

test.serial("in a browser, the user signs in again to invite admins or download their data", async (t) => {
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const members = await browser.open(`${service.url}${base}/members`);
  advanceClock(11 * MINUTE_MS);
  const asked = await browser.press(members, "Create invitation link", { role: "admin" });
  t.is((await browser.signIn(asked, owner)).url, members.url);
  advanceClock(11 * MINUTE_MS);
  const account = `${service.url}/dashboard/account`;
  const again = await browser.signIn(await browser.open(`${account}/export`), owner);
  t.is(again.url, account);
  const { headers } = await follow(browser, again, "Download data");
  t.regex(headers.get("content-disposition") ?? "", /^attachment/);
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
