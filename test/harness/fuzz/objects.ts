import fc from "fast-check";
import type { DomainView } from "../../../resources/domains/schema.ts";
import { type Api, apiAt, newApi } from "../clients/api.ts";
import type { TestService } from "../service.ts";
import { createWebhook, type Receiver } from "../webhooks.ts";

type Kind = "link" | "domain" | "webhook" | "delivery";

export type Objects = Awaited<ReturnType<typeof createObjects>>;

let organizations = 0;

export async function createObjects(service: TestService, receiver: Receiver) {
  const own = await service.createOrganization();
  const api = apiAt(service.url, await service.token(own));
  const foreign = await newApi(service);
  const prefix = `run${++organizations}`;
  const webhook = await createWebhook(api, receiver.url(`/${prefix}`));
  const delivery = await api.send<{ id: string }>("POST", `/v1/webhooks/${webhook.id}/test`);
  const first = await api.createLink({ external_id: "x" });
  const second = await api.createLink({ external_id: "y/z" });
  const deleted = await api.createLink();
  await api.send("DELETE", `/v1/links/${deleted.id}`);
  // Domains of this machine need no DNS record.
  const createDomain = async (by: Api, host: string) =>
    (await by.send<DomainView>("POST", "/v1/domains", { json: { host } })).body;
  const domain = await createDomain(api, `${prefix}.localhost`);
  const theirs = await createWebhook(foreign, receiver.url(`/${prefix}-foreign`));
  return {
    api,
    host: domain.host,
    existing: {
      link: [first.id, second.id],
      domain: [domain.id],
      webhook: [webhook.id],
      delivery: [delivery.body.id],
    },
    /** Those that were deleted, or belong to another organization. */
    unavailable: {
      link: [deleted.id, (await foreign.createLink()).id],
      domain: [(await createDomain(foreign, `${prefix}-foreign.localhost`)).id],
      webhook: [theirs.id],
      delivery: ["evt_none"],
    },
    /** The `next_cursor` of the last page, by operation. */
    cursors: new Map<string, string>(),
    slugPrefix: prefix,
    receiver: receiver.url("/fuzz"),
  };
}

export function noteChange({ existing, unavailable }: Objects, text: string, deleted?: string): void {
  for (const [, id = "", prefix = ""] of text.matchAll(/"id":"((lnk|dom|whk|evt)_\w+)"/g)) {
    const kind = { lnk: "link", dom: "domain", whk: "webhook", evt: "delivery" }[prefix] as Kind;
    if (![...existing[kind], ...unavailable[kind]].includes(id)) existing[kind].push(id);
  }
  for (const kind of ["link", "domain", "webhook"] as const) {
    if (!deleted || !existing[kind].includes(deleted)) continue;
    existing[kind] = existing[kind].filter((id) => id !== deleted);
    unavailable[kind].push(deleted);
  }
}

const key = fc.oneof(
  fc.nat(9).map((number) => `key-${number}`),
  fc.stringMatching(/^[\x21-\x7e]{1,255}$/),
);
const number = fc.oneof({ weight: 1, arbitrary: fc.nat(3) }, { weight: 2, arbitrary: fc.nat(1000) });

/** Values by the names of their members, where few of those that a schema allows are accepted: some of most, so that they collide. */
export function namedValues(operationId: string, objects: Objects): Record<string, fc.Arbitrary<unknown>> {
  const { existing, unavailable, cursors, slugPrefix, receiver, host } = objects;
  const isOfDomain = /domain/i.test(operationId);
  const isOfWebhook = /webhook|deliver/i.test(operationId);
  const kind = isOfDomain ? "domain" : isOfWebhook ? "webhook" : "link";
  const id = (of: Kind) =>
    fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...existing[of], `${of}_none`) },
      { weight: 1, arbitrary: fc.constantFrom(...unavailable[of]) },
    );
  const tags = fc.subarray(["red", "Red", "blue green", "مرحبا"]);
  const cursor = fc.constantFrom(undefined, undefined, undefined, cursors.get(operationId) ?? "none");
  const url = {
    link: fc.oneof(
      fc.constantFrom("https://example.com/", "http://a.example/%C3%A4?b=1#c", "https://bücher.example/ä"),
      fc.webUrl({ withQueryParameters: true, withFragments: true }),
    ),
    // Other hosts would be connected to.
    webhook: fc.nat(300).map((index) => `${receiver}/${index}`),
  };
  return {
    id: id(kind),
    url: isOfWebhook ? url.webhook : url.link,
    host: number.map((one) => `${slugPrefix}-${one}.localhost`),
    domain: fc.constantFrom(undefined, undefined, host, "none.example"),
    delivery_id: id("delivery"),
    slug: number.map((one) => `${slugPrefix}-${one}`),
    external_id: fc.oneof(
      fc.constantFrom("x", "y/z", "ä %"),
      number.map((one) => `id-${one}`),
    ),
    max_clicks: fc.constantFrom(null, 1, 2 ** 31 - 1),
    tags,
    add_tags: tags,
    remove_tags: tags,
    password: fc.constantFrom(null, "früh ling"),
    if: fc.constantFrom(
      { device: "mobile" },
      { language: "de", os: "iOS" },
      { after: "2026-01-01T00:00:00Z" },
    ),
    // Either these, or the IDs.
    filter: fc.constantFrom(undefined, undefined, undefined, {}),
    expected_count: fc.constantFrom(undefined, undefined, undefined, 2),
    ids: fc.uniqueArray(id("link"), { minLength: 1, maxLength: 3 }),
    expires_at: fc.constantFrom(null, "2099-01-31T12:00:00+02:00", "9999-12-31T23:59:59.999Z"),
    events: fc.subarray(["link.created", "link.deleted", "webhook.test"], { minLength: 1 }),
    enabled: fc.constantFrom(true, true, true, false),
    limit: fc.integer({ min: 1, max: 3 }),
    cursor,
    sort: fc.constantFrom("created_at", "-created_at", "clicks", "-last_clicked_at"),
    created_after: fc.constantFrom("2026-01-01T00:00:00Z", "1969-12-31T23:59:59+01:00"),
    created_before: fc.constantFrom("2099-01-31T12:00:00Z", "2000-01-01T00:00:00.123-05:00"),
    search: fc.constantFrom("example", slugPrefix, "É", "_"),
    tag: fc.constantFrom("red", "blue green"),
    from: fc.constantFrom("2026-01-01", "2026-01-31", "2025-02-28"),
    to: fc.constantFrom("2026-02-01", "2026-01-31"),
    "Idempotency-Key": key,
    "If-Match": fc.constantFrom(undefined, undefined, '"1"', '"2"', '"x", "1"', "*", 'W/"1"', '"99"'),
    "If-None-Match": fc.constantFrom('"1"', "*", 'W/"2"', '"99"'),
  };
}
