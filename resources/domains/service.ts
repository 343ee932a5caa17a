import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { Caller } from "../access/actor.ts";
import { SYSTEM } from "../events/types.ts";
import { assertNotStale, type Precondition, preconditionFailed } from "../http/etag.ts";
import { found, Problem, retryLater } from "../http/problem.ts";
import { camelKeys } from "../http/text.ts";
import { validate } from "../http/validate.ts";
import type { LinkService } from "../links/service.ts";
import { planRequired } from "../plans.ts";
import { type DomainRules, domainSchemas, domainTag, isLocalhost, recordName } from "./schema.ts";
import { DOMAIN_DEFAULTS, type Domain, type DomainStore } from "./types.ts";

/** Resolves a name to its TXT records, each in parts. Rejects with `ENOTFOUND` or `ENODATA` if there is none. */
export type ResolveTxt = (name: string) => Promise<string[][]>;

type Options = {
  store: DomainStore;
  links: Pick<LinkService, "leaveDomain">;
  resolveTxt: ResolveTxt;
} & DomainRules;

export type DomainService = ReturnType<typeof createDomainService>;

const CHECK_EVERY_MS = 24 * 60 * 60 * 1000;
const CHECKED_TOGETHER = 20;
const RECORDS_MAX = 50;

export const removalQuery = z.strictObject({
  links: z
    .enum(["move", "delete"])
    .optional()
    .describe(
      "What happens to the links of the domain, up to 1,000: they are moved to the server’s own host, or deleted.",
    ),
});

/** Manages the domains of organizations for REST, MCP and the dashboard. Expected errors are thrown as `Problem`. */
export function createDomainService({ store, links, resolveTxt, ...rules }: Options) {
  const schemas = domainSchemas(rules);

  async function get({ organizationId }: Caller, id: string): Promise<Domain> {
    return found(await store.find(organizationId, id), "domain");
  }

  /** Resolves to the texts of the DNS record of a host. @throws Problem 503 if the name server can't be reached */
  async function readRecord(host: string): Promise<string[]> {
    try {
      const records = await resolveTxt(recordName(host));
      return records.slice(0, RECORDS_MAX).map((parts) => parts.join("").trim());
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === "ENOTFOUND" || code === "ENODATA") return [];
      const detail = `The DNS servers of ${host} don’t answer. Try again later.`;
      throw retryLater(503, "temporarily_unavailable", detail, 60);
    }
  }

  return {
    schemas,
    get,
    list: ({ organizationId }: Caller): Promise<Domain[]> => store.list(organizationId),
    resolve: (host: string) => store.resolve(host),
    findAppLinks: (id: string) => store.findAppLinks(id),

    async create(caller: Caller, input: unknown): Promise<Domain> {
      const { host, ...given } = camelKeys(validate(schemas.create, input));
      const token = randomBytes(16).toString("base64url");
      const fields = { ...DOMAIN_DEFAULTS, ...given, host, token };
      const created = await store.create(caller, fields);
      if ("limit" in created) {
        const detail = `Your organization has reached its limit of ${created.limit} domains. Delete one first.`;
        throw created.limit === 0 ? planRequired() : new Problem(409, "domain_limit", detail);
      }
      if ("isDuplicate" in created)
        throw new Problem(409, "domain_exists", `Your organization already has the domain ${host}.`);
      const proved = isLocalhost(host)
        ? await store.recordCheck(created.id, [token], caller.actor)
        : undefined;
      return typeof proved === "object" ? proved : created;
    },

    async update(caller: Caller, id: string, input: unknown, precondition?: Precondition): Promise<Domain> {
      const changes = camelKeys(validate(schemas.update, input));
      const version = await checkVersion(caller, id, precondition);
      const updated = await store.update(caller, id, changes, version);
      return assertNotStale(found(updated, "domain"), "domain");
    },

    /** Looks for the DNS record. @throws Problem 409 unless it proves that the host is the organization's, or 503 */
    async verify(caller: Caller, id: string): Promise<Domain> {
      const { host, token, verified } = await get(caller, id);
      const tokens = isLocalhost(host) ? [token] : await readRecord(host);
      const result = await store.recordCheck(id, tokens, caller.actor);
      if (result === "taken") {
        const detail = `Another organization has ${host}. It can be taken over once that organization’s DNS record has been missing for 7 days.`;
        throw new Problem(409, "domain_taken", detail);
      }
      if (result === "missing") {
        const expected = `The TXT record ${recordName(host)} must have the value ${token}.`;
        const state =
          tokens.length > 0 ? `It has another one: ${tokens.join(", ")}.` : "It doesn’t exist yet.";
        const kept = verified ? " The domain still serves links." : "";
        throw new Problem(409, "domain_unproven", `${expected} ${state.slice(0, 500)}${kept}`);
      }
      return found(result, "domain");
    },

    /** @throws Problem 409 if the domain has links, and `links` doesn't say what happens to them */
    async remove(caller: Caller, id: string, query: unknown, precondition?: Precondition): Promise<void> {
      const { links: left } = validate(removalQuery, query);
      const version = await checkVersion(caller, id, precondition);
      const { host } = await get(caller, id);
      if (left) await links.leaveDomain(caller, host, left);
      const removed = await store.remove(caller, id, version);
      if (assertNotStale(found(removed, "domain"), "domain") === "in_use") throw inUse(host);
    },

    /** Checks the records of the verified domains that are due, on whichever process takes them first. */
    async checkRecords(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const due = await store.takeUnchecked(Date.now() - CHECK_EVERY_MS, CHECKED_TOGETHER);
        for (const { id, host } of due.filter((one) => !isLocalhost(one.host))) {
          // No answer says nothing about the record: the next day decides.
          const tokens = await readRecord(host).catch(() => undefined);
          if (tokens) await store.recordCheck(id, tokens, SYSTEM);
        }
        // Of a full batch, another process may have taken some.
        if (due.length === 0) return;
      }
    },
  };

  async function checkVersion(caller: Caller, id: string, precondition?: Precondition) {
    if (!precondition) return undefined;
    const domain = await get(caller, id);
    if (!precondition(domainTag(domain))) throw preconditionFailed("domain");
    return domain.version;
  }
}

function inUse(host: string): Problem {
  const detail = `${host} has links. Move or delete them first, or say with \`links\` what happens to them.`;
  return new Problem(409, "domain_in_use", detail);
}
