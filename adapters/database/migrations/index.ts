import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { initial } from "./0001_initial.ts";
import { peopleAndEvents } from "./0002_people_and_events.ts";
import { dropClientDocument } from "./0003_drop_client_document.ts";
import { resetLinkCreator } from "./0004_reset_link_creator.ts";
import { clientIdentities } from "./0005_client_identities.ts";
import { rememberedConsent } from "./0012_remembered_consent.ts";
import { switches } from "./0013_switches.ts";
import { creators } from "./0014_creators.ts";
import { quotas } from "./0015_quotas.ts";
import { linkSearch } from "./0016_link_search.ts";
import { fairDeliveries } from "./0017_fair_deliveries.ts";
import { signInProtection } from "./0018_sign_in_protection.ts";
import { secondFactors } from "./0019_second_factors.ts";
import { notices } from "./0020_notices.ts";
import { keyRotation } from "./0021_key_rotation.ts";
import { auditChain } from "./0022_audit_chain.ts";
import { secretUses } from "./0023_secret_uses.ts";
import { refreshRetries } from "./0024_refresh_retries.ts";
import { webhookVerification } from "./0025_webhook_verification.ts";
import { deletedOrganizations } from "./0027_deleted_organizations.ts";
import type { Migration } from "./migration.ts";

/** All migrations, in order. */
export const MIGRATIONS: Migration[] = [
  initial,
  peopleAndEvents,
  dropClientDocument,
  resetLinkCreator,
  clientIdentities,
  rememberedConsent,
  switches,
  creators,
  quotas,
  linkSearch,
  fairDeliveries,
  signInProtection,
  secondFactors,
  notices,
  keyRotation,
  auditChain,
  secretUses,
  refreshRetries,
  webhookVerification,
  deletedOrganizations,
];

// The migrations of version 0.2, which can't be repeated.
const ATOMIC = 4;

/** Returns the migrations as a Knex source. Listing them saves a file search, which would not find TypeScript. */
export function migrations(engine: Engine): Knex.MigrationSource<Migration> {
  return {
    getMigrations: async () => MIGRATIONS,
    getMigrationName: (migration) => migration.name,
    getMigration: async (migration) => ({
      up: (knex) => migration.up(knex, engine),
      // On PostgreSQL, a transaction that changes several tables deadlocks with transactions of the previous version.
      config: { transaction: engine !== "postgres" || MIGRATIONS.indexOf(migration) < ATOMIC },
      down: () => Promise.reject(new Error("migrations cannot be rolled back: restore a backup")),
    }),
  };
}
