import { randomBytes } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import type { Knex } from "knex";
import { openDatabase } from "../../adapters/database/index.ts";
import { openStorage } from "../../adapters/index.ts";
import { lockOrganization, lockUser } from "../../adapters/locks.ts";
import { hasGalera, startGalera } from "../harness/database/mariadb.ts";
import { atOnce, OPERATOR } from "../harness/database/storage.ts";
import { skip } from "../harness/skip.ts";
import { until } from "../harness/webhooks.ts";

export const stage = "long";

const NODES = 3;
const ROUNDS = 20;
const TITLE = "processes at the nodes of a Galera cluster";

if (hasGalera) await testGalera();
else skip(TITLE, "MariaDB or Galera is not installed");

async function testGalera() {
  const cluster = await startGalera(NODES);
  const admins = cluster.urls.map((url) => openDatabase(url));
  await admins[0]?.knex.raw("create database linkgate");
  const urls = cluster.urls.map((url) => url.replace(/mysql$/, "linkgate"));
  const key = randomBytes(32);
  const storages = urls.map((url) => openStorage(url, key));
  const databases = urls.map((url) => openDatabase(url));
  test.after.always(async () => {
    for (const { close } of [...storages, ...databases, ...admins]) await close();
    await cluster.remove();
  });
  const storageAt = (index: number) => storages[index % NODES] as (typeof storages)[0];
  const databaseAt = (index: number) => databases[index % NODES] as (typeof databases)[0];

  test.serial("first starts at several nodes apply each migration once", async (t) => {
    const applied = (await Promise.all(storages.map(({ migrate }) => migrate()))).flat();
    t.true(applied.length > 0);
    t.is(new Set(applied).size, applied.length);
    for (const { pendingMigrations, clusterSize } of storages) {
      t.deepEqual(await pendingMigrations(), []);
      t.is(await clusterSize(), NODES);
    }
  });

  test.serial("what a node acknowledged is seen at the next statement of every other node", async (t) => {
    const { client } = await storageAt(0).organizations.create("Cluster", "growth", OPERATOR);
    const exp = Math.floor(Date.now() / 1000) + 600;
    const clientId = client?.clientId as string;
    const token = { kind: "ClientCredentials", clientId, generation: 0, aud: "https://example.com", exp };
    for (let round = 0; round < ROUNDS; round++) {
      const [writer, reader] = [storageAt(round), storageAt(round + 1)];
      await writer.oidcAdapter("ClientCredentials").upsert(`token-${round}`, token, 600);
      t.truthy(await reader.findActiveToken(`token-${round}`), `new token ${round}`);
      await reader.oidcAdapter("ClientCredentials").destroy(`token-${round}`);
      t.is(await writer.findActiveToken(`token-${round}`), undefined, `revoked token ${round}`);
      await writer.oidcAdapter("Interaction").upsert(`page-${round}`, { uid: `page-${round}`, exp }, 600);
      t.truthy(await reader.oidcAdapter("Interaction").find(`page-${round}`), `page ${round}`);
    }
  });

  /** At every node concurrently, inserts a row if there is none yet. */
  async function insertFirst(lock: (trx: Knex.Transaction) => Promise<unknown>, id: string): Promise<number> {
    const insert = (trx: Knex.Transaction) =>
      trx("identities").insert({ issuer: id, subject: String(Math.random()), user_id: id, created_at: 0 });
    await atOnce(2 * NODES, (index) =>
      databaseAt(index).transaction(async (trx) => {
        await lock(trx);
        const existing = await trx("identities").where({ user_id: id }).first("subject");
        if (!existing) await insert(trx);
      }),
    );
    return (await databaseAt(0).knex("identities").where({ user_id: id })).length;
  }

  const LOCKS: Record<string, (t: ExecutionContext) => Promise<[string, Parameters<typeof insertFirst>[0]]>> =
    {
      async organization() {
        const { organization } = await storageAt(0).organizations.create("Locked", "growth", OPERATOR);
        return [organization.id, (trx) => lockOrganization(trx, organization.id)];
      },
      async user(t) {
        const user = await storageAt(0).accounts.create(`user${Math.random()}`, "hash", OPERATOR);
        if (!user) throw t.fail();
        return [user.id, (trx) => lockUser(trx, user.id)];
      },
    };
  for (const [name, create] of Object.entries(LOCKS))
    test.serial(`the lock of an ${name} is one for all nodes`.replace("an u", "a u"), async (t) => {
      for (let round = 0; round < 5; round++) {
        const [id, lock] = await create(t);
        t.is(await insertFirst(lock, id), 1);
      }
    });

  test.serial("a node that isn't part of the cluster is unavailable, until it has joined", async (t) => {
    const { id } = (await storageAt(0).organizations.create("Separated", "growth", OPERATOR)).organization;
    const isolate = (value: number) =>
      admins[NODES - 1]?.knex.raw(`set global wsrep_provider_options = 'gmcast.isolate=${value}'`);
    await isolate(1);
    const error = await until(() =>
      storageAt(NODES - 1)
        .organizations.find(id)
        .then(
          () => undefined,
          (error) => error,
        ),
    );
    t.like(error, { name: "StorageUnavailable" });
    t.truthy(await storageAt(0).organizations.find(id), "the others continue");
    await isolate(0);
    t.truthy(
      await until(() =>
        storageAt(NODES - 1)
          .organizations.find(id)
          .catch(() => undefined),
      ),
    );
  });
}
