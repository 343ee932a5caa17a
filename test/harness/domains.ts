import type { Storage } from "../../adapters/index.ts";
import type { DomainView } from "../../resources/domains/schema.ts";
import { createDomainService, type ResolveTxt } from "../../resources/domains/service.ts";
import type { DomainFields } from "../../resources/domains/types.ts";
import { NO_NAMES } from "../../resources/links/rules.ts";
import { type Api, BROWSER } from "./clients/api.ts";
import { sendRaw } from "./clients/raw.ts";
import { startServiceWithDatabase } from "./database/service.ts";
import { domainFields } from "./database/storage.ts";
import { OPERATOR, type OwnService, startTestService } from "./service.ts";

type Visit = { method?: string; headers?: Record<string, string>; body?: string; url?: string };

/** Stores a domain with its DNS record. */
export async function storeDomain(
  { domains }: Pick<Storage, "domains">,
  organizationId: string,
  host: string,
  fields: Partial<DomainFields> = {},
): Promise<void> {
  const created = await domains.create(
    { organizationId, actor: OPERATOR },
    { ...domainFields(host), ...fields },
  );
  if (!("id" in created)) throw new Error(JSON.stringify(created));
  await domains.recordCheck(created.id, [created.token], OPERATOR);
}

/** Starts a service that looks its DNS records up in a map: `records.get("_linkgate.go.example")`. */
export async function startDomainService(settings: Record<string, string> = {}) {
  const records = new Map<string, string[] | "SERVFAIL">();
  const resolveTxt: ResolveTxt = async (name) => {
    const values = records.get(name) ?? [];
    if (values === "SERVFAIL") throw Object.assign(new Error("queryTxt ESERVFAIL"), { code: "ESERVFAIL" });
    if (values.length === 0) throw Object.assign(new Error("queryTxt ENOTFOUND"), { code: "ENOTFOUND" });
    // Longer texts come in parts.
    return values.map((text) => [text.slice(0, 7), text.slice(7)]);
  };
  const options = { lingerMs: 0, resolveTxt };
  const { service, settings: own, knex } = await startServiceWithDatabase(settings, {}, options);

  return {
    service,
    knex,
    records,

    startAnother: () => startTestService(own, {}, options),

    async checkRecords({ storage }: Pick<OwnService, "storage"> = service): Promise<void> {
      const { domains: store } = storage;
      const links = { leaveDomain: () => Promise.reject(new Error("a check moves no links")) };
      const domains = createDomainService({ store, links, resolveTxt, ...NO_NAMES, allowsLocalhost: true });
      await domains.checkRecords(new AbortController().signal);
    },

    /** Sends a request for a host. `body` is that of a JSON response. */
    async at(host: string, path: string, { headers = {}, url = service.url, ...options }: Visit = {}) {
      const named = Object.entries({ "user-agent": BROWSER, ...headers, host }).flat();
      const { headers: received, ...reply } = await sendRaw(url, path, { ...options, headers: named });
      const isJson = /json\b/.test(received["content-type"] ?? "");
      const body: unknown = isJson && reply.text ? JSON.parse(reply.text) : undefined;
      return { ...reply, headers: new Headers(received as Record<string, string>), body };
    },

    async addDomain(api: Api, host: string, fields: object = {}): Promise<DomainView> {
      const created = await create(api, host, fields);
      const { name, value } = created.dns;
      const values = records.get(name);
      records.set(name, [...(Array.isArray(values) ? values : []), value]);
      const verified = await api.send<DomainView>("POST", `/v1/domains/${created.id}/verify`);
      if (verified.status !== 200) throw new Error(`${host} wasn't verified: ${verified.text}`);
      return verified.body;
    },

    create,
  };

  async function create(api: Api, host: string, fields: object = {}): Promise<DomainView> {
    const { status, body, text } = await api.send<DomainView>("POST", "/v1/domains", {
      json: { host, ...fields },
    });
    if (status !== 201) throw new Error(`${host} wasn't added: ${status} ${text}`);
    return body;
  }
}
