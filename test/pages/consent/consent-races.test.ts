import { setTimeout } from "node:timers/promises";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { allow, openConsent, sendForm } from "../../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { isAcceptedByApi, redeemCode, refresh } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startWithStorage } from "../../harness/database/service-storage.ts";
import { rounds } from "../../harness/rounds.ts";
import type { TestOrganization, TestUser } from "../../harness/service.ts";

export const stage = "long";
export const databases = "all";

const { service, second, knex } = await startWithStorage();

const ROUNDS = rounds(8, 40);

type Party = { app: TestOrganization; own: TestOrganization; user: TestUser };

/** Returns the grants of a user that are not revoked, also those without a consent. */
const activeGrants = ({ app, user }: Party) =>
  knex("grants").where({ user_id: user.id, client_id: app.clientId }).whereNull("revoked_at");

const remove = ({ own, user }: Party) =>
  second.members.remove({
    organizationId: own.id,
    userId: user.id,
    manageableRoles: ["owner"],
    actor: OPERATOR,
  });

/** Creates an app, and a user who is not the only owner, with the consent page in a browser. */
async function openPage() {
  const party = await createApp(service);
  await service.createUser([party.own.id], undefined, "owner");
  const browser = new TestBrowser(service.url);
  const page = await openConsent(browser, party.user, authorizeUrl(service, party.app));
  const approve = () => sendForm(browser, page, { decision: "allow", organization_id: party.own.id });
  const follow = async ({ headers }: Response) =>
    new URL((await browser.open(new URL(String(headers.get("location")), service.url).href)).url)
      .searchParams;
  return { party, browser, page, approve, follow };
}

async function isUsable({ app }: Party, code: string | null): Promise<boolean> {
  if (code === null) return false;
  const { status, body } = await redeemCode(service, app, code);
  if (status !== 200) return false;
  const refreshed = await refresh(service, app, String(body.refresh_token));
  return refreshed.status === 200 || (await isAcceptedByApi(service, body.access_token));
}

test.serial("a concurrent approval and cancellation leave a grant only if the app gets a code", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const { party, browser, page, approve, follow } = await openPage();
    const [answer] = await Promise.all([approve(), sendForm(browser, page, { decision: "cancel" })]);
    const end = await follow(answer);
    t.is((await activeGrants(party)).length, end.has("code") ? 1 : 0, `round ${round}`);
  }
});

test.serial("a grant approved during a member's removal stays revoked if the member returns", async (t) => {
  for (let round = 0; round < 2 * ROUNDS; round++) {
    const { party, approve, follow } = await openPage();
    // At a different moment of the approval in each round.
    const [answer] = await Promise.all([approve(), setTimeout(round / 2).then(() => remove(party))]);
    t.true([303, 422].includes(answer.status), String(answer.status));
    const code = answer.status === 303 ? (await follow(answer)).get("code") : null;
    await second.organizations.addMember(party.own.id, party.user.id, "owner", OPERATOR);
    t.false(await isUsable(party, code), `round ${round}`);
    t.deepEqual(await activeGrants(party), [], `round ${round}`);
  }
});

const REVOCATIONS: Record<string, (party: Party, consentId: string) => Promise<unknown>> = {
  "a revocation on the apps page": ({ own }, consentId) => second.grants.revoke(own.id, consentId, OPERATOR),
  "a compromised secret": ({ app }) =>
    second.clients.rotateSecret(app.id, { overlapMs: 3600_000, compromised: true }, OPERATOR),
  "the removal of the member": remove,
};

for (const [what, revoke] of Object.entries(REVOCATIONS))
  test.serial(`no authorization that is remembered during ${what} survives it`, async (t) => {
    for (let round = 0; round < ROUNDS; round++) {
      const { party, browser, page } = await openPage();
      await browser.press(page, "Allow");
      const [{ id: consentId } = { id: "" }] = await second.grants.listByUser(party.user.id);
      const url = authorizeUrl(service, party.app, { prompt: "none" });
      const requests = Array.from({ length: 3 }, () => browser.open(url));
      // At a different moment of the authorization in each round.
      await setTimeout(round % 8);
      const [pages] = await Promise.all([Promise.all(requests), revoke(party, consentId)]);
      t.deepEqual(await activeGrants(party), [], `round ${round}`);
      for (const { searchParams } of pages.map(({ url }) => new URL(url))) {
        const error = searchParams.get("error") ?? "";
        t.true(searchParams.has("code") || /^(consent|login)_required$/.test(error));
        t.false(await isUsable(party, searchParams.get("code")), `round ${round}`);
      }
      const end = new URL((await browser.open(url)).url);
      t.is(end.searchParams.get("error"), "consent_required", `round ${round}`);
    }
  });

test.serial("concurrent requests each get a grant of their own, under one consent", async (t) => {
  const { app, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  await allow(service, user, authorizeUrl(service, app), { browser });
  const pages = await Promise.all(Array.from({ length: 8 }, () => browser.open(authorizeUrl(service, app))));
  const codes = pages.map((page) => new URL(page.url).searchParams.get("code") ?? "");
  t.is(new Set(codes).size, 8);
  const tokens = await Promise.all(codes.map((code) => redeemCode(service, app, code)));
  t.true(tokens.every(({ status }) => status === 200));
  const grants = await knex("grants").where({ user_id: user.id, client_id: app.clientId });
  t.is(grants.length, 9);
  t.is(new Set(grants.map(({ consent_id }) => consent_id)).size, 1);
});
