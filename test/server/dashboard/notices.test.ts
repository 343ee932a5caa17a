import test from "ava";
import { isProblem } from "../../harness/clients/api.ts";
import { browserOf, createColleague, createTeam } from "../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const NOTICES = "/dashboard/notices";
type Notice = {
  id: string;
  kind: string;
  message: string;
  address: string | null;
  dismissed_at: string | null;
};

test.serial("a password change is announced on every page until the user dismisses it", async (t) => {
  const team = await createTeam(service);
  const { owner } = team;
  await service.storage.notices.dismiss(owner.id);
  const new_password = "an entirely new password";
  const json = { current_password: owner.password, new_password };
  t.is((await owner.api.send("POST", "/dashboard/account/password", { json })).status, 204);
  const { browser, page } = await browserOf(service, { ...owner, password: new_password });
  t.true(page.text.includes("Security notice:"));
  const listed = await browser.open(service.url + NOTICES);
  t.true(listed.text.includes("Your password was changed"));
  t.regex(listed.text, /from (127\.0\.0\.1|::1)/);
  t.true(listed.text.includes("This wasn’t me"));
  const after = await browser.press(listed, "Dismiss all");
  t.true(after.text.includes("Notices dismissed."));
  t.true(after.text.includes("Your password was changed"), "dismissed notices remain listed");
  t.false((await browser.open(`${service.url}${team.base}`)).text.includes("Security notice:"));
});

test.serial("a page that answers a rejected form has the number of notices, too", async (t) => {
  const { owner, base } = await createTeam(service);
  await service.storage.notices.dismiss(owner.id);
  const new_password = "an entirely new password";
  const json = { current_password: owner.password, new_password };
  await owner.api.send("POST", "/dashboard/account/password", { json });
  const { browser } = await browserOf(service, { ...owner, password: new_password });
  const settings = await browser.open(`${service.url}${base}/settings`);
  const counted = settings.html.querySelector("a.tool .count")?.text;
  t.regex(counted ?? "", /^[1-9]/);
  const rejected = await browser.press(settings, "Rename organization", { name: " " });
  t.is(rejected.status, 422);
  t.is(rejected.html.querySelector("a.tool .count")?.text, counted);
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

test.serial(
  "an owner's reset link, and its use, are announced to the user with the owner's name",
  async (t) => {
    const { base, owner, member } = await createTeam(service);
    const path = `${base}/members/${member.id}/reset-link`;
    const { body } = await owner.api.send<{ url: string }>("POST", path);
    await postForm(body.url, { password: "an entirely new password" });
    const { browser } = await browserOf(service, { ...member, password: "an entirely new password" });
    const { text } = await browser.open(service.url + NOTICES);
    t.true(text.includes(`${owner.username} created a password reset link for your account`));
    t.true(text.includes(`Your password was reset with a link that ${owner.username} created`));
  },
);

test.serial("notices are listed and dismissed as JSON, each by its own user only", async (t) => {
  const [user, other] = [
    await createColleague(service, undefined),
    await createColleague(service, undefined),
  ];
  const read = async () => (await user.api.send<{ data: Notice[] }>("GET", NOTICES)).body.data;
  const [first] = await read();
  t.is(first?.kind, "new_device");
  t.is(first?.dismissed_at, null);
  isProblem(t, await other.api.send("POST", `${NOTICES}/${first?.id}/dismiss`), {
    status: 404,
    code: "not_found",
  });
  t.is((await user.api.send("POST", `${NOTICES}/${first?.id}/dismiss`)).status, 204);
  t.truthy((await read())[0]?.dismissed_at);
  t.is((await user.api.send("POST", `${NOTICES}/dismiss`)).status, 204);
});

test.serial(
  "an invitation names its organization, inviter and role before and after signing in",
  async (t) => {
    const { base, owner, organization } = await createTeam(service);
    const created = await owner.api.send<{ url: string }>("POST", `${base}/invitations`, {
      json: { role: "admin" },
    });
    const sentence = `${owner.username} invited you to join ${organization.name} as an admin.`;
    const visitor = new TestBrowser(service.url);
    const login = await visitor.open(created.body.url);
    t.true(login.html.text.includes(sentence), login.html.text);
    const register = login.html.querySelector('a[href^="/auth/register"]')?.attributes.href ?? "";
    t.true((await visitor.open(service.url + register)).html.text.includes(sentence));
    const guest = await createColleague(service, undefined);
    const { browser } = await browserOf(service, guest);
    t.true((await browser.open(created.body.url)).html.text.includes(sentence));
    const json = await guest.api.send<{ invited_by: string }>("GET", new URL(created.body.url).pathname);
    t.is(json.body.invited_by, owner.username);
  },
);
