import { createHash, randomBytes } from "node:crypto";
import pLimit from "p-limit";
import { openStorage, type Storage } from "../../adapters/index.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { LINK_DEFAULTS } from "../../resources/links/types.ts";

// A script, because `--against` runs it in the checkout of another version, which has other tables. It prints the result as
// JSON.

export type SeedOptions = {
  url: string;
  /** The encryption key. */
  key: string;
  clients: number;
  /** Authorization codes to exchange. */
  codes: number;
  /** The port of the server for the codes. */
  port: number;
};

/** A linkgate database with the data that the workloads need. */
export type Seeded = {
  url: string;
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
const DAY = 86_400;
const CODE_LIFETIME = 3600; // longer than that of a real code, to last through the other rounds
const CONCURRENCY = 64;

const options = JSON.parse(process.argv[2] as string) as SeedOptions;
const storage = openStorage(options.url, Buffer.from(options.key, "base64url"));
await storage.migrate();
process.stdout.write(JSON.stringify(await seed(options)));
await storage.close();

/** Creates organizations with a client each, one link to follow, and authorization codes. */
async function seed({ url, clients: count, codes, port }: SeedOptions): Promise<Seeded> {
  const clients: NewClient[] = [];
  const organizationIds: string[] = [];
  for (let index = 0; index < count; index++) {
    const { organization, client } = await storage.organizations.create(`Bench ${index}`, "growth", OPERATOR);
    organizationIds.push(organization.id);
    clients.push(client as NewClient);
  }
  const [organizationId = ""] = organizationIds;
  const link = { slug: SLUG, url: "https://example.com/bench", ...LINK_DEFAULTS };
  await storage.links.create(organizationId, OPERATOR, link);
  await storage.clients.setRedirectUris(organizationId, [REDIRECT_URI], OPERATOR);
  const verifier = randomBytes(32).toString("base64url");
  const { clientId } = clients[0] as NewClient;
  const seeded = {
    url,
    organizationId,
    organizationIds,
    clients,
    codes: [] as string[],
    verifier,
    slug: SLUG,
  };
  if (codes === 0) return seeded;
  const create = await prepareCode(organizationId, clientId, verifier, `http://localhost:${port}`);
  const limit = pLimit(CONCURRENCY);
  seeded.codes = await Promise.all(Array.from({ length: codes }, () => limit(create)));
  return seeded;
}

/** Returns a function that creates an authorization code as the consent page would, and returns it. */
async function prepareCode(organizationId: string, clientId: string, verifier: string, resource: string) {
  const member = { organizationId, role: "member" as const };
  const user = await storage.accounts.create("bench", "", OPERATOR, member);
  const adapters = [storage.oidcAdapter("Grant"), storage.oidcAdapter("AuthorizationCode")] as const;
  const now = Math.floor(Date.now() / 1000);
  const common = { iat: now, clientId, accountId: user?.id as string };
  const codeChallenge = createHash("sha256").update(verifier).digest("base64url");
  return () => createCode(adapters, { organizationId, resource, codeChallenge, common, now });
}

type Adapter = ReturnType<Storage["oidcAdapter"]>;
type CodeContext = {
  organizationId: string;
  resource: string;
  codeChallenge: string;
  common: { iat: number; clientId: string; accountId: string };
  now: number;
};

async function createCode([grants, codes]: readonly [Adapter, Adapter], context: CodeContext) {
  const { organizationId, resource, codeChallenge, common, now } = context;
  const grantId = randomBytes(24).toString("base64url");
  const id = randomBytes(32).toString("base64url");
  const resources = { [resource]: "links:write" };
  const grant = { ...common, exp: now + 90 * DAY, jti: grantId, kind: "Grant", organizationId, resources };
  await grants.upsert(grantId, grant, 90 * DAY);
  const code = {
    ...common,
    exp: now + CODE_LIFETIME,
    jti: id,
    kind: "AuthorizationCode",
    grantId,
    scope: "links:write",
    resource: [resource],
    redirectUri: REDIRECT_URI,
    codeChallenge,
    codeChallengeMethod: "S256",
  };
  await codes.upsert(id, code, CODE_LIFETIME);
  return id;
}
