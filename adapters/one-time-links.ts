import type { Knex } from "knex";
import { newSecret, sha256 } from "./crypto/ids.ts";
import type { OneTimeLinkRow } from "./database/tables/accounts.ts";

type Purpose = OneTimeLinkRow["purpose"];
type OneTimeLink = OneTimeLinkRow & { created_by: string };
type NewLink = Pick<OneTimeLink, "purpose" | "user_id" | "created_by"> &
  Partial<Pick<OneTimeLink, "organization_id" | "email">>;

/** Creates a link that can be used once within a time. Resolves to its token, of which only a hash is stored. */
export async function insertLink(trx: Knex.Transaction, link: NewLink, lifetimeMs: number): Promise<string> {
  const token = newSecret("");
  const now = Date.now();
  await trx("one_time_links").insert({
    ...link,
    id_hash: sha256(token),
    created_at: now,
    expires_at: now + lifetimeMs,
  });
  return token;
}

/** Finds the link of a token, unless it was used or has expired. */
export async function findLink(
  knex: Knex,
  purpose: Purpose,
  token: string,
): Promise<OneTimeLink | undefined> {
  return (await unused(knex, purpose, token).first()) as OneTimeLink | undefined;
}

/** Uses the link of a token. Of concurrent calls, one resolves to true. */
export async function redeemLink(trx: Knex.Transaction, purpose: Purpose, token: string): Promise<boolean> {
  return (await unused(trx, purpose, token).update({ used_at: Date.now() })) > 0;
}

/** Revokes the unused links that match. */
export async function revokeLinks(trx: Knex.Transaction, matching: Knex.QueryCallback): Promise<void> {
  await trx("one_time_links").where({ used_at: null }).where(matching).update({ used_at: Date.now() });
}

function unused(knex: Knex, purpose: Purpose, token: string) {
  return knex("one_time_links")
    .where({ id_hash: sha256(token), purpose, used_at: null })
    .whereNotNull("created_by")
    .where("expires_at", ">", Date.now());
}
