import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { OPERATOR } from "../../resources/events/types.ts";
import { REDIRECT_URI } from "../harness/clients/flow.ts";
import { authorizeUrl, openConsent, postAsClient, redeemCode, refresh } from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { ROUND_TRIP_MS, startDistantPair } from "../harness/remote-servers.ts";

export const databases = "all";

const ROUNDS = 30;
// The user approves after 8 to 17 round trips of the rotation, which takes about 16.
const FIRST_OFFSET = 8;
const OFFSETS = 10;

const pair = await startDistantPair();
const { storage, user, near, far } = pair;
const browser = new TestBrowser(near.url);
test.after.always(() => pair.close());

async function createApp() {
  const { organization, client } = await storage.organizations.create("Leaky", "growth", OPERATOR, user.id);
  if (!client) throw new Error("no client");
  await storage.clients.setRedirectUris(organization.id, [REDIRECT_URI], OPERATOR);
  return { ...client, id: organization.id, name: organization.name };
}

test("tokens issued for a compromised secret during its rotation are revoked afterwards", async (t) => {
  let issued = 0;
  const survived: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const app = await createApp();
    const consent = await openConsent(browser, user, authorizeUrl(near, app));
    const path = `/dashboard/organizations/${app.id}/client/rotate`;
    const rotation = far.api.send<{ client_secret: string }>("POST", path, { json: { compromised: true } });
    await sleep((FIRST_OFFSET + (round % OFFSETS)) * ROUND_TRIP_MS);
    const callback = new URL((await browser.press(consent, "Allow", { organization_id: app.id })).url);
    const { status, body } = await redeemCode(near, app, callback.searchParams.get("code") as string);
    const own = await postAsClient(near, "token", app, { grant_type: "client_credentials" });
    const { body: renewed } = await rotation;
    if (status === 200) issued++;
    const tokens = [body.access_token, own.body.access_token].filter((token) => token !== undefined);
    const active = await Promise.all(tokens.map((token) => storage.findActiveToken(String(token))));
    const clientSecret = renewed.client_secret;
    const refreshed =
      status === 200 && (await refresh(near, { ...app, clientSecret }, String(body.refresh_token)));
    if (active.some(Boolean) || (refreshed && refreshed.status === 200)) survived.push(round);
  }
  t.log(`${issued} of ${ROUNDS} codes were redeemed with the old secret`);
  t.deepEqual(survived, []);
});
