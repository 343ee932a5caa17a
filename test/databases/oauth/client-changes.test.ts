import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { sha256 } from "../../../adapters/crypto/ids.ts";
import type { Storage } from "../../../adapters/index.ts";
import { type JoinedClientRow, toClient } from "../../../adapters/oauth/client-row.ts";
import { PLANS, type Plan } from "../../../resources/plans.ts";
import { REDIRECT_URI } from "../../harness/clients/authorization-request.ts";
import { atOnce, createTestStorage, OPERATOR, openObserved } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";
import { rounds } from "../../harness/rounds.ts";
import { startTcpProxy } from "../../harness/tcp-proxy.ts";

export const databases = "all";

// The network between the database and the second process is slow, so their statements interleave. SQLite is a file, and
// allows one write transaction at a time.
const ROUND_TRIP_MS = engine === "sqlite" ? 0 : 20;
const ROUNDS = engine === "sqlite" ? rounds(6, 30) : rounds(11, 110);
// The near change starts after 0 to 10 round trips of the far one.
const OFFSETS = 11;
const HOUR_MS = 3_600_000;

const { url, encryptionKey, first: near } = await createTestStorage();
const proxy = ROUND_TRIP_MS ? await startTcpProxy(url, { roundTripMs: ROUND_TRIP_MS }) : undefined;
const far = openObserved(proxy?.through(url) ?? url, encryptionKey);

/** What is stored of a client. Secrets are in plain text, newest first. */
type State = { secrets: string[]; generation: number; name: string; plan: Plan; redirectUris: string[] };
type App = { id: string; clientId: string; state: State; secretIds: string[] };
/** Returns the new state; undefined if the result contradicts the previous state. */
type Applied = (state: State) => State | undefined;
type Writer = (storage: Storage, app: App, seed: number) => Promise<Applied>;

const rotate =
  (compromised: boolean): Writer =>
  async ({ clients }, { id }) => {
    const rotation = await clients.rotateSecret(id, { overlapMs: HOUR_MS, compromised }, OPERATOR);
    const secret = String(rotation?.clientSecret);
    return (state) => ({
      ...state,
      secrets: compromised ? [secret] : [secret, ...state.secrets.slice(0, 1)],
      generation: state.generation + Number(compromised),
    });
  };

const WRITERS: Record<string, Writer> = {
  "a compromised rotation": rotate(true),
  "a rotation with an overlap": rotate(false),
  "the revocation of a secret": async ({ clients }, { id, secretIds, state }, seed) => {
    const index = seed % 3 === 0 ? 0 : 1;
    const revoked = state.secrets[index];
    const result = await clients.revokeSecret(id, String(secretIds[index]), OPERATOR);
    return (current) => {
      const position = current.secrets.indexOf(String(revoked));
      const expected = position === -1 ? "missing" : position === 0 ? "newest" : undefined;
      if (result !== expected) return undefined;
      const secrets = current.secrets.filter((secret, at) => secret !== revoked || at === 0);
      return { ...current, secrets };
    };
  },
  "a rename": async ({ organizationSettings }, { id }, seed) => {
    const name = `Renamed ${seed}`;
    await organizationSettings.change(id, { name }, OPERATOR);
    return (state) => ({ ...state, name });
  },
  "a plan change": async ({ organizations }, { id, state }, seed) => {
    const plan = PLANS.filter((other) => other !== state.plan)[seed % 2] as Plan;
    await organizations.setPlan(id, plan, OPERATOR);
    return (current) => ({ ...current, plan });
  },
  "a change of redirect URIs": async ({ clients }, { id }, seed) => {
    const redirectUris = [`${REDIRECT_URI}/${seed}`];
    await clients.setRedirectUris(id, redirectUris, OPERATOR);
    return (state) => ({ ...state, redirectUris });
  },
};

async function createApp(): Promise<App> {
  const { organization, client } = await near.organizations.create("Racing", "growth", OPERATOR);
  const { id, name, plan } = organization;
  const options = { overlapMs: HOUR_MS, compromised: false };
  const rotation = await near.clients.rotateSecret(id, options, OPERATOR);
  const view = await near.clients.findByOrganization(id);
  const secrets = [String(rotation?.clientSecret), String(client?.clientSecret)];
  const secretIds = (view?.secrets ?? []).map((secret) => secret.id);
  const state = { secrets, generation: 0, name, plan, redirectUris: [] };
  return { id, clientId: String(client?.clientId), secretIds, state };
}

async function observe({ id, clientId }: App) {
  const client = await far.clients.find(clientId);
  const metadata = await near.oidcAdapter("Client").find(clientId);
  const organization = await near.organizations.find(id);
  const view = await near.clients.findByOrganization(id);
  return {
    secrets: client?.secrets.map(({ hash }) => hash).toSorted(),
    withoutExpiry: client?.secrets.filter(({ expiresAt }) => expiresAt === null).map(({ hash }) => hash),
    generation: client?.generation,
    names: [metadata?.client_name, organization?.name],
    plan: organization?.plan,
    redirectUris: [metadata?.redirect_uris, view?.redirectUris],
  };
}

function expected({ secrets, generation, name, plan, redirectUris }: State) {
  return {
    secrets: secrets.map(sha256).toSorted(),
    withoutExpiry: secrets.slice(0, 1).map(sha256),
    generation,
    names: [name, name],
    plan,
    redirectUris: [redirectUris, redirectUris],
  };
}

const names = Object.keys(WRITERS);
const pairs = names.flatMap((one, index) => names.slice(index).map((other) => [one, other] as const));

for (const [one, other] of pairs)
  test.serial(`concurrent changes take effect one after the other: ${one} and ${other}`, async (t) => {
    await atOnce(ROUNDS, async (round) => {
      const app = await createApp();
      const [atFar, atNear] = round % 2 ? [one, other] : [other, one];
      const changes = await Promise.all([
        WRITERS[atFar]?.(far, app, 2 * round),
        sleep((round % OFFSETS) * ROUND_TRIP_MS).then(() => WRITERS[atNear]?.(near, app, 2 * round + 1)),
      ]);
      const possible = [changes, changes.toReversed()].flatMap((order) => {
        const state = order.reduce<State | undefined>((last, apply) => last && apply?.(last), app.state);
        return state ? [expected(state)] : [];
      });
      const observed = await observe(app);
      const isPossible = possible.some((state) => JSON.stringify(state) === JSON.stringify(observed));
      t.true(isPossible, `${JSON.stringify(observed)} is none of ${JSON.stringify(possible)}`);
    });
  });

const ROW: JoinedClientRow = {
  ...{ id: "lgc_1", organization_id: "org_1", name: "Works", plan: "growth" },
  ...{ suspended_at: null, disabled_at: null, require_dpop: false, fapi: false },
  ...{ redirect_uris: "[]", generation: 1, secret_id: "sec_01", hash: "older", expires_at: 1 },
};

test("the secrets of a client are newest first, in whichever order the database returns them", (t) => {
  const rows = [ROW, { ...ROW, secret_id: "sec_02", hash: "newer", expires_at: null }];
  const [one, other] = [toClient(rows), toClient(rows.toReversed())];
  t.is(one?.secrets.map(({ hash }) => hash).join(), "newer,older");
  t.deepEqual(other, one);
});

const KINDS = ["ClientCredentials", "AccessToken", "RefreshToken", "AuthorizationCode"];

test("no token that a client requested before its secret was compromised is found, even if stored later", async (t) => {
  const { organization, client } = await near.organizations.create("Leaky", "growth", OPERATOR);
  const exp = Math.floor(Date.now() / 1000) + 60;
  const token = { clientId: String(client?.clientId), exp };
  const storeAll = (when: string, generation: number) =>
    Promise.all(
      KINDS.map(async (kind) =>
        near.oidcAdapter(kind).upsert(when + kind, { ...token, kind, generation }, 60),
      ),
    );
  const countOf = async (when: string) => {
    const found = await Promise.all(KINDS.map(async (kind) => far.oidcAdapter(kind).find(when + kind)));
    return found.filter(Boolean).length;
  };
  await storeAll("before", 0);
  t.is(await countOf("before"), KINDS.length);
  await near.clients.rotateSecret(organization.id, { overlapMs: 0, compromised: true }, OPERATOR);
  await storeAll("late", 0);
  await storeAll("after", 1);
  t.deepEqual([await countOf("before"), await countOf("late"), await countOf("after")], [0, 0, KINDS.length]);
});
