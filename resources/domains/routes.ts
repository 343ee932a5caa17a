import { z } from "zod";
import { type Declare, type Operation, pathParameter, sameAs } from "../openapi/operation.ts";
import { DOMAIN_EXAMPLE, domainPageSchema, domainSchema, domainTag, toView } from "./schema.ts";
import { type DomainService, removalQuery } from "./service.ts";
import type { Domain } from "./types.ts";

const READ = { tag: "Domains", scopes: ["domains:read"] } satisfies Partial<Operation>;
const WRITE = { tag: "Domains", scopes: ["domains:write"] } satisfies Partial<Operation>;

const byId = z.object({ id: pathParameter("Domain ID (dom_…).", DOMAIN_EXAMPLE.id) });
const domain = sameAs("list_domains");

function responseOf(domain: Domain) {
  return { status: 200, headers: { ETag: domainTag(domain) }, body: toView(domain) };
}

export function domainRoutes(declare: Declare, domains: DomainService): void {
  declare({
    ...WRITE,
    id: "createDomain",
    at: "POST /v1/domains",
    summary: "Add a domain",
    description:
      "Adds a domain for short links. It serves links once its DNS record is verified, so create the record in `dns`, then send `POST /v1/domains/{id}/verify`.",
    body: domains.schemas.create,
    responses: { 201: { description: "The domain.", body: domainSchema, headers: ["Location", "ETag"] } },
    errors: ["domain_limit", "domain_exists"],
    tool: {
      name: "create_domain",
      description: "Adds a domain. Verify it after the user has created the DNS record in dns.",
      input: z.strictObject({ host: z.string(), default: z.boolean().optional() }),
      output: domain,
    },
    async run(caller, { body }) {
      const created = await domains.create(caller, body);
      const headers = { Location: `/v1/domains/${created.id}`, ETag: domainTag(created) };
      return { status: 201, headers, body: toView(created) };
    },
  });

  declare({
    ...READ,
    id: "listDomains",
    at: "GET /v1/domains",
    summary: "List domains",
    description: "Returns all domains of the organization, in the order of their hosts.",
    responses: { 200: { description: "The domains.", body: domainPageSchema } },
    tool: {
      name: "list_domains",
      description: "Lists domains. Links can have those that are verified.",
      output: domainPageSchema.pick({ data: true }),
    },
    async run(caller) {
      const all = await domains.list(caller);
      return { status: 200, body: { data: all.map(toView), next_cursor: null } };
    },
  });

  declare({
    ...READ,
    id: "getDomain",
    at: "GET /v1/domains/{id}",
    summary: "Retrieve a domain",
    params: byId,
    headers: ["If-None-Match"],
    responses: { 200: { description: "The domain.", body: domainSchema, headers: ["ETag"] } },
    run: async (caller, { params: { id } }) => responseOf(await domains.get(caller, id)),
  });

  declare({
    ...WRITE,
    id: "updateDomain",
    at: "PATCH /v1/domains/{id}",
    summary: "Update a domain",
    description:
      "Updates the fields that you send and keeps the others. Send null to clear a nullable field. `app_links` is replaced as a whole. The next visitor sees the change.",
    params: byId,
    headers: ["If-Match"],
    body: domains.schemas.update,
    responses: { 200: { description: "The updated domain.", body: domainSchema, headers: ["ETag"] } },
    run: async (caller, { params: { id }, body, precondition }) =>
      responseOf(await domains.update(caller, id, body, precondition)),
  });

  declare({
    ...WRITE,
    id: "verifyDomain",
    at: "POST /v1/domains/{id}/verify",
    summary: "Verify a domain",
    description:
      "Looks for the DNS record in `dns`. From then on, the host serves the links of the organization. The record is checked again every day. A domain that has lost it keeps working, but if it stays lost for 7 days, another organization that proves the host gets it.",
    params: byId,
    responses: { 200: { description: "The verified domain.", body: domainSchema, headers: ["ETag"] } },
    errors: ["domain_unproven", "domain_taken"],
    tool: { name: "verify_domain", description: "Looks for the DNS record of a domain.", output: domain },
    run: async (caller, { params: { id } }) => responseOf(await domains.verify(caller, id)),
  });

  declare({
    ...WRITE,
    id: "deleteDomain",
    at: "DELETE /v1/domains/{id}",
    summary: "Delete a domain",
    description:
      "Deletes a domain, whose host then serves nothing. With links, the request fails unless `links` says what happens to them. A link that can’t be moved, because its slug is taken or reserved, keeps the domain.",
    params: byId,
    query: removalQuery,
    headers: ["If-Match"],
    responses: { 204: { description: "Deleted." } },
    errors: ["domain_in_use"],
    tool: {
      name: "delete_domain",
      description: "Deletes a domain. Its links are deleted too, or move to this service's host: say which.",
      input: z.strictObject({ ...byId.shape, links: z.enum(["move", "delete"]).optional() }),
      async question(caller, { id }) {
        return `Delete the domain ${(await domains.get(caller, id)).host}?`;
      },
    },
    async run(caller, { params: { id }, query, precondition }) {
      await domains.remove(caller, id, query, precondition);
      return { status: 204 };
    },
  });
}
