import type { Knex } from "knex";
import { isDuplicate } from "../database/engine.ts";

/** A program on a network that used a client secret. `lastUsedAt` is epoch milliseconds. */
export type SecretCaller = { program: string; network: string; lastUsedAt: number };

const LIFETIME_MS = 30 * 24 * 60 * 60 * 1000;
// A secret that leaks can be used from anywhere. The most recent callers are kept.
const MAX_CALLERS = 20;

/** Records that a secret was used. */
export async function recordSecretUse(
  knex: Knex,
  secretId: string,
  { program, network, lastUsedAt }: SecretCaller,
): Promise<void> {
  const times = { last_used_at: lastUsedAt, expires_at: lastUsedAt + LIFETIME_MS };
  await knex("client_secrets").where({ id: secretId }).update({ last_used_at: lastUsedAt });
  const key = { secret_id: secretId, program, network };
  if ((await knex("client_secret_uses").where(key).update(times)) > 0) return;
  try {
    await knex("client_secret_uses").insert({ ...key, ...times });
  } catch (error) {
    if (!isDuplicate(error)) throw error; // another process was first
  }
  const callers = await knex("client_secret_uses")
    .where({ secret_id: secretId })
    .orderBy("last_used_at", "desc")
    .select("program", "network");
  for (const oldest of callers.slice(MAX_CALLERS)) {
    await knex("client_secret_uses")
      .where({ secret_id: secretId, ...oldest })
      .delete();
  }
}

/** Lists who used secrets in the last 30 days, most recent first. */
export async function listSecretCallers(
  knex: Knex,
  secretIds: readonly string[],
): Promise<Map<string, SecretCaller[]>> {
  const rows = await knex("client_secret_uses")
    .whereIn("secret_id", [...secretIds])
    .where("expires_at", ">", Date.now())
    .orderBy("last_used_at", "desc")
    .select({
      secretId: "secret_id",
      program: "program",
      network: "network",
      lastUsedAt: "last_used_at",
    });
  const callers = Map.groupBy(rows, ({ secretId }) => secretId);
  return new Map(
    secretIds.map((id) => [id, (callers.get(id) ?? []).map(({ secretId: _, ...caller }) => caller)]),
  );
}
