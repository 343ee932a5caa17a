import test from "ava";
import { isProblem } from "../../harness/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { browserOf, createColleague, createTeam, firstPartyToken } from "../../harness/dashboard.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const MINUTE_MS = 60_000;

// One after the other: each moves the clock.
test.serial("what hands an organization over needs a sign-in of the last ten minutes", async (t) => {
  const { base, owner, member } = await createTeam(service);
  const needing: [method: string, path: string][] = [
    ["POST", "/client/rotate"],
    ["POST", `/members/${member.id}/reset-link`],
    ["DELETE", ""],
  ];
  advanceClock(11 * MINUTE_MS);
  for (const [method, path] of needing) {
    const reply = await owner.api.send(method, base + path);
    isProblem(t, reply, { status: 403, code: "reauthentication_required" });
  }
  t.is((await owner.api.send("GET", `${base}/client`)).status, 200);
  const again = await firstPartyToken(service, owner);
  const { status } = await fetch(`${service.url}${base}/client/rotate`, {
    method: "POST",
    headers: { authorization: `Bearer ${again}`, "content-type": "application/json" },
    body: "{}",
  });
  t.is(status, 200);
});

test.serial("in the browser the person signs in again, and comes back to the form", async (t) => {
  const { base, owner } = await createTeam(service);
  const { person } = await browserOf(service, owner);
  const client = await person.open(`${service.url}${base}/client`);
  const form = await person.open(`${service.url}${base}/client/rotate`);
  advanceClock(11 * MINUTE_MS);
  for (const page of [
    await person.press(form, "Make a new secret"),
    await person.open(`${service.url}${base}/client/rotate`),
  ]) {
    t.truthy(page.html.querySelector("#password"), page.text);
  }
  const asked = await person.open(`${service.url}${base}/client/rotate`);
  const back = await person.signIn(asked, owner);
  t.is(back.url, `${service.url}${base}/client/rotate`);
  t.is((await person.press(back, "Make a new secret")).status, 200);
  t.is(client.status, 200);
});

test.serial("sec 112: an invitation is over after seven days", async (t) => {
  const { base, owner } = await createTeam(service);
  const { body } = await owner.api.send<{ url: string }>("POST", `${base}/invitations`, { json: {} });
  const path = new URL(body.url).pathname;
  advanceClock(7 * 24 * 60 * MINUTE_MS - MINUTE_MS);
  const guest = await createColleague(service, undefined);
  t.is((await guest.api.send("GET", path)).status, 200);
  advanceClock(MINUTE_MS);
  isProblem(t, await guest.api.send("POST", path), { status: 404, code: "invitation_over" });
});
