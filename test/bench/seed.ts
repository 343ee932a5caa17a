import { createHash, randomBytes } from "node:crypto";
import pLimit from "p-limit";
import { openStorage, type Storage } from "../../adapters/index.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { LINK_DEFAULTS } from "../../resources/links/types.ts";

/** The encryption key of all databases. */
const KEY = randomBytes(32).toString("base64url");

export type SeedOptions = {
  clients?: number;
  /** Authorization codes to exchange, and the port of the server for them. */
  codes?: number;
  port?: number;
};

/** A linkgate database with the data that the workloads need. */
export type Seeded = {
  url: string;
  key: string;
  organizationId: string;
  /** Those of the clients. */
  organizationIds: string[];
  clients: NewClient[];
  codes: string[];
  verifier: string;
  slug: string;
};

const REDIRECT_URI = "https://app.example.com/callback";
const SLUG = "bench";
const GRANT_LIFETIME = 90 * 86_400;
const CODE_LIFETIME = 3600; // longer than that of a real code, to last through the other rounds
const CONCURRENCY = 64;

export async function withStorage<T>(url: string, work: (storage: Storage) => Promise<T>): Promise<T> {
  const storage = openStorage(url, Buffer.from(KEY, "base64url"));
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}

/** Creates a database with organizations with a client each, one link to follow, and authorization codes. */
export function seed(url: string, { clients: count = 1, codes = 0, port = 0 }: SeedOptions = {}) {
  return withStorage(url, async (storage): Promise<Seeded> => {
    await storage.migrate();
    const clients: NewClient[] = [];
    const organizationIds: string[] = [];
    for (let index = 0; index < count; index++) {
      const created = await storage.organizations.create(`Bench ${index}`, "growth", OPERATOR);
      organizationIds.push(created.organization.id);
      clients.push(created.client as NewClient);
    }
    const [organizationId = ""] = organizationIds;
    const link = { slug: SLUG, url: "https://example.com/bench", ...LINK_DEFAULTS };
    await storage.links.create(organizationId, OPERATOR, link);
    await storage.clients.setRedirectUris(organizationId, [REDIRECT_URI], OPERATOR);
    const verifier = randomBytes(32).toString("base64url");
    const names = { organizationId, organizationIds, slug: SLUG };
    const seeded = { url, key: KEY, ...names, clients, codes: [], verifier };
    if (codes === 0) return seeded;
    const create = await prepareCode(storage, seeded, `http://localhost:${port}`);
    const limit = pLimit(CONCURRENCY);
    return { ...seeded, codes: await Promise.all(Array.from({ length: codes }, () => limit(create))) };
  });
}

/** Returns a function that creates an authorization code as the consent page would, and returns it. */
async function prepareCode(storage: Storage, seeded: Seeded, resource: string) {
  const { organizationId, clients, verifier } = seeded;
  const member = { organizationId, role: "member" as const };
  const user = await storage.accounts.create("bench", "", OPERATOR, member);
  const [grants, codes] = [storage.oidcAdapter("Grant"), storage.oidcAdapter("AuthorizationCode")];
  const now = Math.floor(Date.now() / 1000);
  const common = { iat: now, clientId: clients[0]?.clientId as string, accountId: user?.id as string };
  const code = {
    ...common,
    exp: now + CODE_LIFETIME,
    kind: "AuthorizationCode",
    scope: "links:write",
    resource: [resource],
    redirectUri: REDIRECT_URI,
    codeChallenge: createHash("sha256").update(verifier).digest("base64url"),
    codeChallengeMethod: "S256",
  };
  const resources = { [resource]: "links:write" };
  const grant = { ...common, exp: now + GRANT_LIFETIME, kind: "Grant", organizationId, resources };
  return async () => {
    const [grantId, jti] = [randomBytes(24).toString("base64url"), randomBytes(32).toString("base64url")];
    await grants.upsert(grantId, { ...grant, jti: grantId }, GRANT_LIFETIME);
    await codes.upsert(jti, { ...code, jti, grantId }, CODE_LIFETIME);
    return jti;
  };
}
