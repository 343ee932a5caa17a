import { randomBytes } from "node:crypto";
import type { NewClient } from "../../adapters/clients.ts";
import type { Storage } from "../../adapters/index.ts";
import { OPERATOR } from "../../resources/events.ts";
import type { Plan } from "../../resources/plans.ts";
import type { Role } from "../../resources/scopes.ts";
import type { Surroundings } from "../../resources/webhooks/send.ts";
import { readSettings } from "../../server/config.ts";
import { createLog } from "../../server/log.ts";
import { createPasswords } from "../../server/passwords.ts";
import { type Service, startService } from "../../server/service.ts";
import { createTestDatabase } from "./database.ts";

/** An organization on a paid plan, with its client. */
export type TestOrganization = { id: string; name: string } & NewClient;
export type TestUser = { id: string; username: string; password: string };

/** What a test fills a service with, wherever that runs. */
export type Population = {
  createOrganization(name?: string, plan?: Plan): Promise<TestOrganization>;
  /** A user with this role in each of the organizations; a `member` unless it is given, who may allow apps `links:*`. */
  createUser(organizationIds: string[], username?: string, role?: Role): Promise<TestUser>;
  /** A token by client credentials, sent as scripts send it. */
  token(client: NewClient, parameters?: Record<string, string>): Promise<string>;
};

/** A real service on a port and a database of its own. */
export type TestService = Omit<Service, "waitingFor"> & { url: string } & Population;

let count = 0;
const passwords = createPasswords();

/** Starts a service; `settings` are environment variables. The caller closes it. */
export async function startTestService(
  settings: Record<string, string> = {},
  surroundings: Surroundings = {},
): Promise<TestService> {
  const database = settings.DATABASE_URL ? undefined : await createTestDatabase();
  const service = await startService(
    readSettings({
      PORT: "0",
      ...(database && { DATABASE_URL: database.url, ENCRYPTION_KEY: randomBytes(32).toString("base64url") }),
      RATE_LIMIT: "off",
      LOG_LEVEL: "silent",
      ...settings,
    }),
    createLog("silent"),
    surroundings,
  );
  const url = service.addresses.base;
  return {
    ...service,
    ...populate(url, service.storage),
    url,
    async close() {
      await service.close();
      await database?.drop();
    },
  };
}

/** Fills the service at an address, through its database. */
export function populate(url: string, storage: Storage): Population {
  return {
    async createOrganization(name = `Organization ${++count}`, plan = "growth") {
      const { organization, client } = await storage.organizations.create(name, plan, OPERATOR);
      return { id: organization.id, name, ...(client as NewClient) };
    },
    async createUser(organizationIds, username = `user${++count}`, role: Role = "member") {
      const password = `a fine password ${count}`;
      const [first, ...others] = organizationIds;
      const membership = first ? { organizationId: first, role } : undefined;
      const user = await storage.accounts.create(
        username,
        await passwords.hash(password),
        OPERATOR,
        membership,
      );
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
      if (!answer.ok) throw new Error(`no token: ${answer.status} ${await answer.text()}`);
      return ((await answer.json()) as { access_token: string }).access_token;
    },
  };
}

/** A form as OAuth clients send it. */
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

/** `Authorization: Bearer …` */
export function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}
