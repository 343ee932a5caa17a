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
import { linkIndexes } from "./0029_link_indexes.ts";
import { clickLog } from "./0030_click_log.ts";
import { schemaCompatibility } from "./0033_schema_compatibility.ts";
import { eventTraces } from "./0035_event_traces.ts";
import { linkChanges } from "./0036_link_changes.ts";
import { recordCompatibility } from "./compatibility.ts";
import type { LaterMigration, Migration } from "./migration.ts";

/** The migrations after 0033, in order. Each states which earlier versions can use the schema that it leaves. */
const LATER: LaterMigration[] = [eventTraces, linkChanges];

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
  linkIndexes,
  clickLog,
  schemaCompatibility,
  ...LATER,
];

/** The number of migrations of version 0.2, which can't be repeated. */
export const ATOMIC = 4;

/** Returns migrations as a Knex source. Listing them saves a file search, which would not find TypeScript. */
export function migrations(
  engine: Engine,
  all: (Migration | LaterMigration)[] = MIGRATIONS,
): Knex.MigrationSource<Migration | LaterMigration> {
  return {
    getMigrations: async () => all,
    getMigrationName: (migration) => migration.name,
    getMigration: async (migration) => ({
      async up(knex) {
        await migration.up(knex, engine);
        // Before Knex records the migration: if the process dies in between, both are repeated.
        if ("oldestCompatible" in migration) await recordCompatibility(knex, migration);
      },
      // On PostgreSQL, a transaction that changes several tables deadlocks with transactions of the previous version.
      config: { transaction: engine !== "postgres" || all.indexOf(migration) < ATOMIC },
      down: () => Promise.reject(new Error("migrations cannot be rolled back: restore a backup")),
    }),
  };
}
