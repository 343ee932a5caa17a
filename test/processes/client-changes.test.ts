import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import pLimit from "p-limit";
import { OPERATOR } from "../../resources/events/types.ts";
import type { Plan } from "../../resources/plans.ts";
import { basic } from "../harness/clients/oauth.ts";
import { engine } from "../harness/database/test-database.ts";
import {
  type App,
  type Change,
  OTHERS,
  REVOKE_SECRET,
  ROTATIONS,
  type State,
  type Writer,
} from "../harness/model/client-changes.ts";
import { ROUND_TRIP_MS, type Server, startDistantPair } from "../harness/remote-servers.ts";
import { rounds } from "../harness/rounds.ts";
import { postForm } from "../harness/service.ts";

export const databases = "all";

// SQLite allows one write transaction at a time, so there is little to interleave.
const ROUNDS = engine === "sqlite" ? rounds(15, 40) : rounds(30, 150);
const ROUNDS_WITHOUT_ROTATION = ROUNDS / 5;
// The number of rounds that run concurrently, each with its own client.
const CONCURRENCY = 30;
// The near change starts after 0 to 10 round trips of the far one.
const OFFSETS = 11;

const pair = await startDistantPair({ transactions: CONCURRENCY });
const { storage, user, near, far } = pair;
const limit = pLimit(CONCURRENCY);
const apps = await Promise.all(Array.from({ length: ROUNDS }, () => limit(createApp)));
test.after.always(() => pair.close());

async function createApp(): Promise<App> {
  const { organization, client } = await storage.organizations.create("Racing", "growth", OPERATOR, user.id);
  if (!client) throw new Error("no client");
  const { id, name, plan } = organization;
  return {
    id,
    clientId: client.clientId,
    state: { secrets: [client.clientSecret], name, plan, redirectUris: [] },
  };
}

/** Gives the client a second secret, so that one can be revoked. */
async function addSecret(app: App): Promise<void> {
  const options = { overlapMs: 3_600_000, compromised: false };
  const rotated = await storage.clients.rotateSecret(app.id, options, OPERATOR);
  app.state.secrets = [rotated?.clientSecret as string, ...app.state.secrets.slice(0, 1)];
  const view = await storage.clients.findByOrganization(app.id);
  app.secretIds = view?.secrets.map(({ id }) => id);
}

type Round = { app: App; before: State; changes: [Change, Change] };

let seed = 0;

async function race(app: App, index: number, [one, other]: readonly [Writer, Writer]): Promise<Round> {
  const before = structuredClone(app.state);
  const [atFar, atNear] = index % 2 ? [one, other] : [other, one];
  const changes = await Promise.all([
    atFar.change(app, far, ++seed),
    sleep((index % OFFSETS) * ROUND_TRIP_MS).then(() => atNear.change(app, near, ++seed)),
  ]);
  return { app, before, changes };
}

/** Returns what is wrong after a round, if anything. */
async function findViolation({ app, before, changes }: Round): Promise<string | undefined> {
  const { token } = app;
  delete app.token;
  const isTokenRevoked = token !== undefined && !(await storage.findActiveToken(token));
  const created = changes.flatMap(({ secret }) => secret ?? []);
  const observed = await observe(app, [...before.secrets, ...created]);
  const possible = outcomes(before, changes);
  const outcome = possible.find((state) => JSON.stringify(expected(state)) === JSON.stringify(observed));
  if (!outcome) return `${JSON.stringify(observed)} is none of ${JSON.stringify(possible.map(expected))}`;
  app.state = outcome;
  const mustBeRevoked = changes.some(({ isCompromised }) => isCompromised);
  return token === undefined || isTokenRevoked === mustBeRevoked
    ? undefined
    : `earlier tokens are ${isTokenRevoked ? "revoked" : "active"}`;
}

/** Returns the states after two sequential changes, for each order that their results allow. */
function outcomes(state: State, [one, other]: [Change, Change]): State[] {
  const orders = [
    [one, other],
    [other, one],
  ];
  return orders.flatMap((order) => {
    try {
      return order.reduce((current, { apply }) => apply(current), state);
    } catch {
      return [];
    }
  });
}

function expected({ secrets, name, plan, redirectUris }: State) {
  const active = secrets.toSorted();
  return {
    near: active,
    far: active,
    count: secrets.length,
    withoutExpiry: [secrets[0]?.slice(-4)],
    name: [name, name],
    plan: [plan, plan],
    redirectUris: [redirectUris, redirectUris],
  };
}

/** Returns the client as the token endpoints, oidc-provider and its organization see it. */
async function observe(app: App, secrets: string[]) {
  const accepted = async (server: Server) => {
    const answers = await Promise.all(secrets.map((secret) => accepts(server, app, secret)));
    return secrets.filter((_, index) => answers[index]).toSorted();
  };
  const [atNear, atFar, metadata, view, organization] = await Promise.all([
    accepted(near),
    accepted(far),
    storage.oidcAdapter("Client").find(app.clientId),
    storage.clients.findByOrganization(app.id),
    storage.organizations.find(app.id),
  ]);
  const asStored = metadata?.organization as { plan: Plan } | undefined;
  const newest = view?.secrets.filter(({ expiresAt }) => expiresAt === null);
  return {
    near: atNear,
    far: atFar,
    count: view?.secrets.length,
    withoutExpiry: newest?.map(({ last4 }) => last4),
    name: [metadata?.client_name, organization?.name],
    plan: [asStored?.plan, organization?.plan],
    redirectUris: [metadata?.redirect_uris, view?.redirectUris],
  };
}

/** Returns whether a server accepts a secret. On the Free plan a correct secret gets 400 instead of 401. */
async function accepts({ url }: Server, app: App, clientSecret: string): Promise<boolean> {
  const credentials = basic({ clientId: app.clientId, clientSecret });
  const answer = await postForm(`${url}/oauth/token`, { grant_type: "client_credentials" }, credentials);
  const body = (await answer.json()) as { access_token?: string };
  if (body.access_token) app.token = body.access_token;
  return answer.status !== 401;
}

const writers = [...ROTATIONS, REVOKE_SECRET, ...OTHERS];
const pairs = writers.flatMap((one, index) => writers.slice(index).map((other) => [one, other] as const));

for (const writers of pairs) {
  const [one, other] = writers;
  const count = ROTATIONS.includes(one) ? ROUNDS : ROUNDS_WITHOUT_ROTATION;
  const titles = `${one.title} and ${one === other ? "another one" : other.title}`;
  test.serial(`concurrent changes take effect one after the other: ${titles}`, async (t) => {
    const some = apps.slice(0, count);
    if (writers.includes(REVOKE_SECRET)) await Promise.all(some.map((app) => limit(addSecret, app)));
    const raced = await Promise.all(some.map((app, index) => limit(race, app, index, writers)));
    const violations = await Promise.all(raced.map(findViolation));
    for (const [index, reason] of violations.entries()) if (reason) apps[index] = await createApp();
    const reasons = violations.filter((reason) => reason !== undefined);
    t.deepEqual(reasons.slice(0, 3), [], `${reasons.length} of ${count} rounds`);
  });
}
