import type { Actor, Caller } from "../access/actor.ts";
import type { LinkDomain } from "../links/rules.ts";
import type { Domain, DomainChanges, DomainFields } from "./schema.ts";

export type { Domain, DomainChanges, DomainFields };

/** The fields of a domain that was added with its host only. */
export const DOMAIN_DEFAULTS: Omit<DomainFields, "host"> = {
  default: false,
  caseSensitive: true,
  rootRedirectUrl: null,
  notFoundUrl: null,
  fallbackUrl: null,
  appLinks: { apple_app_site_association: null, assetlinks: null },
};

/** What a request for the host of a domain needs. */
export type ServedDomain = Pick<
  Domain,
  "id" | "organizationId" | "host" | "caseSensitive" | "rootRedirectUrl" | "notFoundUrl"
> &
  Pick<LinkDomain, "asOf">;

/** `"taken"`: another organization has the host. */
export type Verification = Domain | "missing" | "taken" | undefined;

/** The storage port of the domains of organizations. Every change is stored with an event. */
export type DomainStore = {
  /** Resolves to the limit of the plan if it is reached; `isDuplicate`: the organization already has the host. */
  create(
    caller: Caller,
    fields: DomainFields & { token: string },
  ): Promise<Domain | { limit: number } | { isDuplicate: true }>;
  find(organizationId: string, id: string): Promise<Domain | undefined>;
  /** In the order of their hosts. */
  list(organizationId: string): Promise<Domain[]>;
  count(organizationId: string): Promise<number>;
  update(
    caller: Caller,
    id: string,
    changes: DomainChanges,
    version?: number,
  ): Promise<Domain | "stale" | undefined>;
  /** `"in_use"`: the domain has links. */
  remove(caller: Caller, id: string, version?: number): Promise<"removed" | "stale" | "in_use" | undefined>;
  /**
   * Stores which tokens the DNS record of a domain has. One that has its token is verified, and takes over a host that
   * another organization has lost for 7 days; one without is marked as lost.
   */
  recordCheck(id: string, tokens: readonly string[], actor: Actor): Promise<Verification>;
  /** Takes up to `count` verified domains that weren't checked since then, which no other process takes. */
  takeUnchecked(since: number, count: number): Promise<Pick<Domain, "id" | "host">[]>;
  /** Resolves to the verified domain with a host, unless its organization was deleted or suspended. */
  resolve(host: string): Promise<ServedDomain | undefined>;
  findAppLinks(id: string): Promise<Domain["appLinks"] | undefined>;
};
