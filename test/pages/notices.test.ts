import test from "ava";
import { isMissing } from "../harness/clients/api.ts";
import { browserOf, createColleague, createTeam } from "../harness/clients/dashboard.ts";
import { advanceClock } from "../harness/clock.ts";
import { postForm, startTestService } from "../harness/service.ts";

const service = await startTestService();

const NOTICES = "/dashboard/notices";
const FRESH = "an entirely new password";
type Notice = { id: string; kind: string; dismissed_at: string | null };

test.serial("a password change is announced on every page until the user dismisses it", async (t) => {
  const team = await createTeam(service);
  const { owner } = team;
  await service.storage.notices.dismiss(owner.id);
  const new_password = FRESH;
  const json = { current_password: owner.password, new_password };
  t.is((await owner.api.send("POST", "/dashboard/account/password", { json })).status, 204);
  const { browser, page } = await browserOf(service, { ...owner, password: new_password });
  t.true(page.text.includes("Security notice:"));
  const settings = await browser.open(`${service.url}${team.base}/settings`);
  const refused = await browser.press(settings, "Rename organization", { name: " " });
  for (const { text } of [settings, refused]) t.regex(text, /<span class="count">[1-9]/);
  const listed = await browser.open(service.url + NOTICES);
  t.true(listed.text.includes("Your password was changed"));
  t.regex(listed.text, /from (127\.0\.0\.1|::1)/);
  t.true(listed.text.includes("This wasn’t me"));
  const after = await browser.press(listed, "Dismiss all");
  t.true(after.text.includes("Notices dismissed."));
  t.true(after.text.includes("Your password was changed"), "dismissed notices remain listed");
  t.false((await browser.open(`${service.url}${team.base}`)).text.includes("Security notice:"));
});

test.serial("a new device is announced in other sessions, but not in its own", async (t) => {
  const user = await service.createUser([]);
  const { browser: known } = await browserOf(service, user);
  await service.storage.notices.dismiss(user.id);
  advanceClock(60_000);
  const { page } = await browserOf(service, user);
  t.false(page.text.includes("Security notice:"));
  const announced = await known.open(`${service.url}/dashboard`);
  t.true(announced.text.includes("Security notice:"));
  t.true(announced.text.includes("New sign-in"));
});

test.serial("an owner's reset link and its use are announced with the owner's name", async (t) => {
  const { base, owner, member } = await createTeam(service);
  const path = `${base}/members/${member.id}/reset-link`;
  const { body } = await owner.api.send<{ url: string }>("POST", path);
  await postForm(body.url, { password: FRESH });
  const { browser } = await browserOf(service, { ...member, password: FRESH });
  const { text } = await browser.open(service.url + NOTICES);
  t.true(text.includes(`${owner.username} created a password reset link for your account`));
  t.true(text.includes(`Your password was reset with a link that ${owner.username} created`));
});

test.serial("notices are listed and dismissed as JSON, each by its own user only", async (t) => {
  const user = await createColleague(service, undefined);
  const other = await createColleague(service, undefined);
  const read = async () => (await user.api.send<{ data: Notice[] }>("GET", NOTICES)).body.data;
  const [first] = await read();
  t.is(first?.kind, "new_device");
  t.is(first?.dismissed_at, null);
  isMissing(t, await other.api.send("POST", `${NOTICES}/${first?.id}/dismiss`));
  t.is((await user.api.send("POST", `${NOTICES}/${first?.id}/dismiss`)).status, 204);
  t.truthy((await read())[0]?.dismissed_at);
  t.is((await user.api.send("POST", `${NOTICES}/dismiss`)).status, 204);
});
