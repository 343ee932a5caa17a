import { randomBytes } from "node:crypto";
import { hash } from "@node-rs/argon2";
import type { Storage } from "../../adapters/index.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import type { Role } from "../../resources/access/scopes.ts";
import type { ResolveTxt } from "../../resources/domains/service.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import type { Plan } from "../../resources/plans.ts";
import type { SendDefaults } from "../../resources/webhooks/send.ts";
import { createLog } from "../../server/log.ts";
import { type Service, startService } from "../../server/process/service.ts";
import { readSettings } from "../../server/settings/config.ts";
import { closeAfterTests } from "./closing.ts";
import { createTestDatabase } from "./database/test-database.ts";
import { createStatementListeners, type OnStatement } from "./statements.ts";

/** The actor of what tests set up. */
export { OPERATOR };

/** An organization on a paid plan, with its API client. */
export type TestOrganization = { id: string; name: string } & NewClient;
export type TestUser = { id: string; username: string; password: string };

export type Population = {
  createOrganization(name?: string, plan?: Plan): Promise<TestOrganization>;
  /** Creates a user with this role in each organization. The default role, `member`, can grant apps `links:*`. */
  createUser(organizationIds: string[], username?: string, role?: Role): Promise<TestUser>;
  token(client: NewClient, parameters?: Record<string, string>): Promise<string>;
};

export type TestService = Omit<Service, "waitingFor" | "failed" | "port"> & { url: string } & Population;
export type OwnService = TestService & { onStatement: OnStatement };

let count = 0;
// Verifying a password takes the effort that its hash names. With the server's own, tests would do little else.
const LEAST_EFFORT = { memoryCost: 8, timeCost: 1, parallelism: 1 };

/**
 * Starts a service; `settings` are environment variables. It is closed after the tests of the file, without waiting for
 * requests that are still on the network, unless the options have no `lingerMs`, as in production.
 */
export async function startTestService(
  settings: Record<string, string> = {},
  sendDefaults: SendDefaults = {},
  options: { lingerMs?: number; resolveTxt?: ResolveTxt } = { lingerMs: 0 },
): Promise<OwnService> {
  const database = settings.DATABASE_URL ? undefined : await createTestDatabase();
  const { observer, onStatement } = createStatementListeners();
  const service = await startService(
    readSettings({
      PORT: "0",
      ...(database && { DATABASE_URL: database.url, ENCRYPTION_KEY: randomBytes(32).toString("base64url") }),
      RATE_LIMIT: "off",
      LOG_LEVEL: "silent",
      // On a machine that is busy with other tests, a server with less patience would rightly refuse requests.
      DATABASE_TIMEOUT: "60",
      ...settings,
    }),
    createLog("silent"),
    sendDefaults,
    { resolveTxt: noRecord, ...options, observer },
  );
  const url = service.urls.base;
  return {
    ...service,
    ...populate(url, service.storage),
    url,
    onStatement,
    close: closeAfterTests(async () => {
      await service.close();
      await database?.drop();
    }),
  };
}

/** Tests ask no name server of the machine. */
const noRecord: ResolveTxt = (name) =>
  Promise.reject(Object.assign(new Error(`queryTxt ENOTFOUND ${name}`), { code: "ENOTFOUND" }));

export function populate(url: string, storage: Storage): Population {
  return {
    async createOrganization(name = `Organization ${++count}`, plan = "growth") {
      const { organization, client } = await storage.organizations.create(name, plan, OPERATOR);
      return { id: organization.id, name, ...(client as NewClient) };
    },
    async createUser(organizationIds, username = `user${++count}`, role: Role = "member") {
      const password = `a fine password ${++count}`;
      const [first, ...others] = organizationIds;
      const membership = first ? { organizationId: first, role } : undefined;
      const hashed = await hash(password, LEAST_EFFORT);
      const user = await storage.accounts.create(username, hashed, OPERATOR, membership);
      if (!user) throw new Error(`${username} is taken`);
      for (const id of others) await storage.organizations.addMember(id, user.id, role, OPERATOR);
      return { ...user, password };
    },
    async token({ clientId, clientSecret }, parameters = {}) {
      const answer = await postForm(`${url}/oauth/token`, {
        grant_type: "client_credentials",
        client_id: clientId,
        client_secret: clientSecret,
        ...parameters,
      });
      if (!answer.ok) throw new Error(`the token request failed: ${answer.status} ${await answer.text()}`);
      return ((await answer.json()) as { access_token: string }).access_token;
    },
  };
}

export function postForm(
  url: string,
  fields: Record<string, string> | URLSearchParams,
  headers: object = {},
) {
  return fetch(url, {
    method: "POST",
    body: new URLSearchParams(fields),
    headers: { ...headers },
    redirect: "manual",
  });
}

export function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}
