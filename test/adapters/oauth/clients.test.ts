import test from "ava";
import { sha256 } from "../../../adapters/crypto/hash.ts";
import { type Client, type JoinedClientRow, toClient } from "../../../adapters/oauth/client-row.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { atOnce, createTestStorage } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();

test.after.always(() => storage.close());

const { first, second } = storage;

const HOUR = 3_600_000;

async function newOrganization() {
  const { organization, client } = await first.organizations.create("Secrets", "growth", OPERATOR);
  if (!client) throw new Error("no client");
  return { id: organization.id, ...client };
}

async function clientOf(clientId: string): Promise<Client> {
  return (await second.clients.find(clientId)) as Client;
}

async function validHashes(clientId: string): Promise<string[]> {
  return (await clientOf(clientId)).secrets.map(({ hash }) => hash);
}

test("concurrent rotations leave two valid secrets, of which one expires", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { id, clientId } = await newOrganization();
    const answers = await atOnce(10, (index) =>
      (index % 2 ? first : second).clients.rotateSecret(
        id,
        { overlapMs: HOUR, compromised: false },
        OPERATOR,
      ),
    );
    const hashes = answers.map((answer) => sha256(answer?.clientSecret as string));
    const { secrets } = await clientOf(clientId);
    t.is(secrets.length, 2);
    t.is(secrets.filter(({ expiresAt }) => expiresAt === null).length, 1);
    for (const { hash } of secrets) t.true(hashes.includes(hash));
    t.is((await first.clients.findByOrganization(id))?.secrets.length, 2);
  }
});

test("the previous secret stays valid during the overlap, until another rotation", async (t) => {
  const { id, clientId, clientSecret } = await newOrganization();
  const rotate = async () => {
    const rotation = await first.clients.rotateSecret(id, { overlapMs: HOUR, compromised: false }, OPERATOR);
    return rotation?.clientSecret as string;
  };
  const next = await rotate();
  t.deepEqual(await validHashes(clientId), [next, clientSecret].map(sha256));
  const third = await rotate();
  t.deepEqual(await validHashes(clientId), [third, next].map(sha256));
});

test("a rotation without overlap or of a compromised secret leaves only the new one", async (t) => {
  const { id, clientId } = await newOrganization();
  for (const options of [
    { overlapMs: 0, compromised: false },
    { overlapMs: HOUR, compromised: true },
  ]) {
    const rotation = await first.clients.rotateSecret(id, options, OPERATOR);
    t.deepEqual(await validHashes(clientId), [sha256(rotation?.clientSecret as string)]);
  }
});

test("concurrent rotations, some of them compromised, leave no previous secret", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { id, clientId, clientSecret } = await newOrganization();
    await atOnce(6, (index) =>
      (index % 2 ? first : second).clients.rotateSecret(
        id,
        {
          overlapMs: HOUR,
          compromised: index % 3 === 0,
        },
        OPERATOR,
      ),
    );
    const hashes = await validHashes(clientId);
    t.true(hashes.length === 1 || hashes.length === 2);
    t.false(hashes.includes(sha256(clientSecret)));
    t.is((await clientOf(clientId)).generation, 2);
  }
});

test("an organization without a client cannot rotate secrets or set redirect URIs", async (t) => {
  const { organization } = await first.organizations.create("Free", "free", OPERATOR);
  for (const id of [organization.id, "org_unknown"]) {
    t.is(await first.clients.rotateSecret(id, { overlapMs: 0, compromised: false }, OPERATOR), undefined);
    t.false(await first.clients.setRedirectUris(id, [], OPERATOR));
  }
});

const ROW: JoinedClientRow = {
  id: "lgc_1",
  organization_id: "org_1",
  name: "Works",
  plan: "growth",
  suspended_at: null,
  require_dpop: false,
  disabled_at: null,
  fapi: false,
  redirect_uris: "[]",
  generation: 1,
  secret_id: "sec_01",
  hash: "older",
  expires_at: 1,
};

test("the secrets of a client are newest first, in whichever order the database returns them", (t) => {
  const rows = [ROW, { ...ROW, secret_id: "sec_02", hash: "newer", expires_at: null }];
  const [one, other] = [toClient(rows), toClient(rows.toReversed())];
  t.deepEqual(
    one?.secrets.map(({ hash }) => hash),
    ["newer", "older"],
  );
  t.deepEqual(other, one);
});
