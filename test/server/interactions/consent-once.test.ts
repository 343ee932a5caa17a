import { randomBytes } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import {
  authorizeUrl,
  createApp,
  isAcceptedByApi,
  openConsent,
  redeemCode,
  refresh,
  sendForm,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestStorage } from "../../harness/database/storage.ts";
import { rounds } from "../../harness/rounds.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

export const databases = "all";

// The service, and a second process that has the same database open.
const { url, encryptionKey, second, close } = await createTestStorage();
const service = await startTestService({
  DATABASE_URL: url,
  ENCRYPTION_KEY: Buffer.from(encryptionKey).toString("base64url"),
});
const { app, own, user } = await createApp(service);
test.after.always(async () => {
  await service.close();
  await close();
});

const ROUNDS = rounds(5, 20);
const POSTS = 30;
const activeGrants = ({ id }: { id: string }) => service.storage.grants.listByUser(id);

async function openConsentPage(signingIn: TestUser, browser = new TestBrowser(service.url)) {
  return { browser, page: await openConsent(browser, signingIn, authorizeUrl(service, app)) };
}

/** Follows the redirect of a response in the same browser; returns the parameters of the final URL. */
async function followRedirect(browser: TestBrowser, answer: Response): Promise<URLSearchParams> {
  const { url: end } = await browser.open(new URL(String(answer.headers.get("location")), service.url).href);
  return new URL(end).searchParams;
}

test("concurrent approvals of one consent page create one grant and one code", async (t) => {
  for (let round = 0; round < rounds(2, 20); round++) {
    const approver = await service.createUser([own.id], undefined, "owner");
    const { browser, page } = await openConsentPage(approver);
    const form = { decision: "allow", organization_id: own.id };
    const answers = await Promise.all(Array.from({ length: POSTS }, () => sendForm(browser, page, form)));
    t.is((await activeGrants(approver)).length, 1, `round ${round}`);
    t.deepEqual(
      answers.map(({ status }) => status),
      Array(POSTS).fill(303),
      "each response redirects like the first",
    );
    const ends = [];
    for (const answer of answers) ends.push(await followRedirect(browser, answer));
    t.is(ends.filter((end) => end.has("code")).length, 1);
  }
});

test("after a double click, following the second response leads to a code", async (t) => {
  const approver = await service.createUser([own.id], undefined, "owner");
  const { browser, page } = await openConsentPage(approver);
  const form = { decision: "allow", organization_id: own.id };
  await sendForm(browser, page, form); // the browser drops this response
  const end = await followRedirect(browser, await sendForm(browser, page, form));
  const { status, body } = await redeemCode(service, app, String(end.get("code")));
  t.is(status, 200);
  t.true(await isAcceptedByApi(service, body.access_token));
  t.is((await activeGrants(approver)).length, 1);
});

test("only the first decision counts, whether approval or cancellation", async (t) => {
  const allow = { decision: "allow", organization_id: own.id };
  const cancel = { decision: "cancel" };
  for (const [first, then, expected] of [
    [allow, cancel, "code"],
    [cancel, allow, "error"],
  ] as const) {
    const approver = await service.createUser([own.id], undefined, "owner");
    const { browser, page } = await openConsentPage(approver);
    await sendForm(browser, page, first);
    const end = await followRedirect(browser, await sendForm(browser, page, then));
    t.true(end.has(expected), expected);
    t.is((await activeGrants(approver)).length, expected === "code" ? 1 : 0, expected);
  }
});

test("a concurrent approval and cancellation leave a grant only if the app gets a code", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const approver = await service.createUser([own.id], undefined, "owner");
    const { browser, page } = await openConsentPage(approver);
    const [answer] = await Promise.all([
      sendForm(browser, page, { decision: "allow", organization_id: own.id }),
      sendForm(browser, page, { decision: "cancel" }),
    ]);
    const end = await followRedirect(browser, answer as Response);
    t.is((await activeGrants(approver)).length, end.has("code") ? 1 : 0, `round ${round}`);
  }
});

test("a grant approved while a member is being removed stays revoked when the member is added again", async (t) => {
  const { organization } = await second.organizations.create("Company", "growth", OPERATOR);
  await service.createUser([organization.id], undefined, "owner");
  for (let round = 0; round < ROUNDS * 2; round++) {
    const member = await service.createUser([organization.id], undefined, "admin");
    const { browser, page } = await openConsentPage(member);
    const [answer] = await Promise.all([
      sendForm(browser, page, { decision: "allow", organization_id: organization.id }),
      // At a different moment of the approval in each round.
      setTimeout(round / 2).then(() =>
        second.members.remove({
          organizationId: organization.id,
          userId: member.id,
          manageableRoles: ["admin"],
          actor: OPERATOR,
        }),
      ),
    ]);
    t.true([303, 422].includes(answer.status), String(answer.status));
    const code = answer.status === 303 ? (await followRedirect(browser, answer)).get("code") : null;
    const redeemed = code === null ? undefined : await redeemCode(service, app, code);
    await second.organizations.addMember(organization.id, member.id, "admin", OPERATOR);
    t.deepEqual(await activeGrants(member), [], `round ${round}`);
    if (redeemed?.status !== 200) continue;
    t.false(await isAcceptedByApi(service, redeemed.body.access_token), `round ${round}`);
    t.is((await refresh(service, app, String(redeemed.body.refresh_token))).status, 400);
  }
});

test("a member who was removed while the page was open gets an error, and nothing is stored", async (t) => {
  const { organization } = await second.organizations.create(
    `Co ${randomBytes(4).toString("hex")}`,
    "growth",
    OPERATOR,
  );
  await service.createUser([organization.id], undefined, "owner");
  const member = await service.createUser([organization.id, own.id]);
  const { browser, page } = await openConsentPage(member);
  const change = { organizationId: organization.id, userId: member.id, actor: OPERATOR };
  await second.members.remove({ ...change, manageableRoles: ["member"] });
  const answer = await sendForm(browser, page, { decision: "allow", organization_id: organization.id });
  t.is(answer.status, 422);
  t.deepEqual(await activeGrants(member), []);
  const end = await followRedirect(
    browser,
    await sendForm(browser, page, { decision: "allow", organization_id: own.id }),
  );
  t.true(end.has("code"), "the page still works for another organization");
});

test("two consecutive approvals create two grants", async (t) => {
  const browser = new TestBrowser(service.url);
  for (let times = 1; times <= 2; times++) {
    const { page } = await openConsentPage(user, browser);
    t.true(new URL((await browser.press(page, "Allow")).url).searchParams.has("code"));
    t.is((await activeGrants(user)).length, times);
  }
});
