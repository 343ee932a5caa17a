import { randomBytes } from "node:crypto";
import { openDatabase } from "../../../adapters/database/index.ts";
import { openStorage, type Storage } from "../../../adapters/index.ts";
import type { Role } from "../../../resources/access/scopes.ts";
import { DOMAIN_DEFAULTS } from "../../../resources/domains/types.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { type Click, LINK_DEFAULTS, type LinkFields } from "../../../resources/links/types.ts";
import type { Plan } from "../../../resources/plans.ts";
import { newWebhookSecret } from "../../../resources/webhooks/signature.ts";
import type { Webhook, WebhookFields } from "../../../resources/webhooks/types.ts";
import { closeAfterTests } from "../closing.ts";
import { createStatementListeners } from "../statements.ts";
import { createTestDatabase } from "./test-database.ts";

/** The actor of what tests set up. */
export { OPERATOR };

/** One database, opened as by two processes, with another connection for the test. */
export type TestStorage = Awaited<ReturnType<typeof createTestStorage>>;

// On a machine that is busy with other tests, statements and transactions would rightly be given up earlier.
const PATIENT = { timeoutMs: 60_000 };

export function openObserved(
  url: string,
  encryptionKeys: Parameters<typeof openStorage>[1],
  options: Parameters<typeof openStorage>[2] = PATIENT,
) {
  const { observer, onStatement } = createStatementListeners();
  const storage = openStorage(url, encryptionKeys, { ...options, observer });
  return { ...storage, close: closeAfterTests(storage.close), onStatement };
}

let count = 0;

type Settings = { migrated?: boolean; options?: string; limitsOf?: StorageOptions["limitsOf"] };
type StorageOptions = NonNullable<Parameters<typeof openStorage>[2]>;

/** Opens a new database for the tests of a file, migrated unless `migrated` is false. `options` are appended to a SQLite URL. */
export async function createTestStorage({ migrated = true, options = "", limitsOf }: Settings = {}) {
  const { url: plain, drop } = await createTestDatabase({ empty: !migrated });
  const url = plain + options;
  const encryptionKey = randomBytes(32);
  const open = () => openObserved(url, encryptionKey, { ...PATIENT, ...(limitsOf && { limitsOf }) });
  const [first, second] = [open(), open()];
  const database = openDatabase(url, PATIENT);
  if (migrated) await first.migrate();
  return {
    url,
    encryptionKey,
    first,
    second,
    /** A third connection, to inspect the database. */
    database,
    knex: database.knex,
    /** Returns the one process for even numbers, and the other one for odd ones. */
    either: (index: number) => (index % 2 === 0 ? first : second),
    async createOrganization(plan: Plan = "growth") {
      return (await first.organizations.create(`Organization ${++count}`, plan, OPERATOR)).organization.id;
    },
    async createUser(organizationId?: string, role: Role = "member") {
      const membership = organizationId ? { organizationId, role } : undefined;
      const user = await first.accounts.create(`stored-user-${++count}`, "a hash", OPERATOR, membership);
      return user?.id as string;
    },
    async createLink(organizationId: string, fields: Partial<LinkFields> = {}, by: Storage = first) {
      const all = linkFields({ slug: `stored-link-${++count}`, ...fields });
      const created = await by.links.create(organizationId, OPERATOR, all);
      if (!("id" in created)) throw new Error(JSON.stringify(created));
      return created;
    },
    async createWebhook(organizationId: string, changes: Partial<WebhookFields> = {}): Promise<Webhook> {
      const url = `https://example.com/webhook-${++count}`;
      const fields: WebhookFields = { url, events: ["link.created"], enabled: true, ...changes };
      return (await first.webhooks.create(organizationId, OPERATOR, fields, newWebhookSecret())) as Webhook;
    },
    close: closeAfterTests(async () => {
      await Promise.all([first.close(), second.close(), database.close()]);
      await drop();
    }),
  };
}

export function linkFields(changes: Partial<LinkFields> & Pick<LinkFields, "slug">): LinkFields {
  return { url: "https://example.com/", ...LINK_DEFAULTS, ...changes };
}

/** Returns the fields of a domain whose record has the text `token`. */
export const domainFields = (host: string) => ({ ...DOMAIN_DEFAULTS, host, token: "token" });

/** Returns a click of a person, with an unknown source unless it is given. */
export function clickAt(at: number, source: Partial<Click> = {}): Click {
  const unknown = {
    destination: null,
    referrer: null,
    country: null,
    device: null,
    browser: null,
    operatingSystem: null,
    utmSource: null,
    utmMedium: null,
    utmCampaign: null,
  };
  return { clickedAt: at, ...unknown, bot: false, ...source };
}

export function atOnce<T>(times: number, run: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: times }, (_, index) => run(index)));
}

export function settledAtOnce<T>(times: number, run: (index: number) => Promise<T>) {
  return Promise.allSettled(Array.from({ length: times }, (_, index) => run(index)));
}
