import test from "ava";
import type { z } from "zod";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { eventPageSchema } from "../../../resources/webhooks/event-list.ts";
import { type Api, apiAt, isInvalid } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { advanceClock, DAY_MS } from "../../harness/clock.ts";
import { purgeExpired } from "../../harness/database/purge.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import { until } from "../../harness/webhooks.ts";

export const databases = "all";

type Page = z.output<typeof eventPageSchema>;

const { service, receiver, knex, subscribe } = await startWebhookService();

async function createApi() {
  const organization = await service.createOrganization();
  return { organization, api: apiAt(service.url, await service.token(organization)) };
}

const list = async (api: Api, query = "") => (await api.get<Page>(`/v1/events${query}`)).body;

const idsOf = (events: Page["data"]) => events.map(({ data }) => data.id as string);
const eventTypesOf = (events: Page["data"]) => events.map(({ type }) => type);

const metadataOf = (bytes: number) =>
  Object.fromEntries(Array.from({ length: bytes / 500 }, (_, key) => [`key${key}`, "x".repeat(500)]));

async function readAll(organizationId: string, api: Api, query = "limit=100", after?: string) {
  await service.storage.auditChain.append(organizationId);
  const events: Page["data"] = [];
  let cursor = after;
  for (;;) {
    const page = await list(api, `?${query}${cursor ? `&cursor=${cursor}` : ""}`);
    events.push(...page.data);
    cursor = page.resume_cursor;
    if (page.next_cursor === null) return { events, cursor };
  }
}

test.serial("an event is listed as webhooks get it, with the same ID and the same bytes", async (t) => {
  const types = [
    ...["link.created", "link.updated", "link.deleted", "client.secret_rotated"],
    ...["authorization.granted", "authorization.revoked"],
  ];
  const { organization, api, path } = await subscribe(types);
  // More than the audit log keeps, with names that JavaScript reorders.
  const metadata = { 2: "two", 1: "é\u2028😀", ...metadataOf(3000) };
  const { id } = await api.createLink({ title: "Title", metadata });
  await api.send("PATCH", `/v1/links/${id}`, { json: { title: "New" } });
  await api.send("DELETE", `/v1/links/${id}`);
  const kind = { overlapMs: 3_600_000, compromised: false };
  const rotation = await service.storage.clients.rotateSecret(organization.id, kind, OPERATOR);
  const user = await service.createUser([organization.id]);
  await tokensFor(service, organization, user);
  const [grant] = await service.storage.grants.listByOrganization(organization.id);
  await service.storage.grants.revokeAny(grant?.id as string, OPERATOR);
  const received = await receiver.waitFor(path, 6);
  const { events } = await readAll(organization.id, api);
  t.deepEqual(eventTypesOf(events), types);
  t.deepEqual(events[3]?.data, {
    client_id: organization.clientId,
    compromised: false,
    previous_expires_at: new Date(rotation?.previousExpiresAt ?? 0).toISOString(),
  });
  const sent = new Map(received.map(({ headers, text }) => [headers["webhook-id"], text]));
  for (const { id, ...body } of events) t.is(JSON.stringify(body), sent.get(id) as string, body.type);
});

test.serial("updates are listed with the whole link if there is no webhook", async (t) => {
  const { organization, api } = await createApi();
  const created = await api.createLink({ tags: ["a"] });
  const { body } = await api.send("PATCH", `/v1/links/${created.id}`, { json: { title: "New" } });
  const { events } = await readAll(organization.id, api, "type=link.updated");
  const data: unknown[] = events.map((event) => event.data);
  t.deepEqual(data, [body]);
});

test.serial("pages of every size have all events, oldest first, and a cursor to resume from", async (t) => {
  const { organization, api } = await createApi();
  const { cursor: start } = await readAll(organization.id, api);
  const links = [];
  for (let created = 0; created < 7; created++) links.push((await api.createLink()).id);
  for (const limit of [1, 3, 7, 100]) {
    const { events, cursor } = await readAll(organization.id, api, `limit=${limit}`, start);
    t.deepEqual(idsOf(events), links);
    const empty = await list(api, `?cursor=${cursor}`);
    t.like(empty, { data: [], next_cursor: null });
    const later = await api.createLink();
    links.push(later.id);
    const next = await readAll(organization.id, api, "limit=100", empty.resume_cursor);
    t.deepEqual(idsOf(next.events), [later.id]);
  }
});

test.serial("a page of large links is shorter, and the next one continues it", async (t) => {
  const { organization, api } = await createApi();
  const ids = [];
  for (let created = 0; created < 15; created++)
    ids.push((await api.createLink({ metadata: metadataOf(25_000) })).id);
  await service.storage.auditChain.append(organization.id);
  const first = await list(api, "?type=link.created");
  t.true(first.data.length < 15);
  t.is(typeof first.next_cursor, "string");
  const { events } = await readAll(organization.id, api, "type=link.created");
  t.deepEqual(idsOf(events), ids);
});

test.serial("types can be combined, and a cursor continues with other types", async (t) => {
  const { organization, api } = await createApi();
  const { id } = await api.createLink();
  await api.send("PATCH", `/v1/links/${id}`, { json: { title: "New" } });
  await api.send("DELETE", `/v1/links/${id}`);
  const typesOf = async (query: string, after?: string) => {
    const { events, cursor } = await readAll(organization.id, api, query, after);
    return { types: eventTypesOf(events), cursor };
  };
  t.deepEqual((await typesOf("type=link.updated")).types, ["link.updated"]);
  const both = await typesOf("limit=1&type=link.deleted&type=link.created");
  t.deepEqual(both.types, ["link.created", "link.deleted"]);
  await api.createLink();
  t.deepEqual((await typesOf("type=link.created&type=link.updated", both.cursor)).types, ["link.created"]);
});

test.serial("latest is behind all events so far, and before later ones, which appear soon", async (t) => {
  const { organization, api } = await createApi();
  await api.createLink();
  await service.storage.auditChain.append(organization.id);
  const latest = await list(api, "?cursor=latest");
  t.like(latest, { data: [], next_cursor: null });
  const { id } = await api.createLink();
  const events = await until(async () => {
    const { data } = await list(api, `?cursor=${latest.resume_cursor}`);
    return data.length > 0 ? data : undefined;
  });
  t.deepEqual(idsOf(events), [id]);
});

test.serial("events of another organization aren't listed, and neither is its cursor accepted", async (t) => {
  const [mine, theirs] = [await createApi(), await createApi()];
  await theirs.api.createLink();
  const { cursor } = await readAll(theirs.organization.id, theirs.api);
  t.deepEqual((await readAll(mine.organization.id, mine.api)).events, []);
  const reply = await mine.api.get(`/v1/events?cursor=${cursor}`);
  isInvalid(t, reply, "cursor");
});

test.serial("a cursor from a lost future of the database is rejected", async (t) => {
  const { organization, api } = await createApi();
  await api.createLink();
  const { cursor } = await readAll(organization.id, api);
  await api.createLink();
  const { cursor: later } = await readAll(organization.id, api);
  t.not(later, cursor);
  // As if a backup from between the two events had been restored.
  const head = () => knex("audit_chains").where({ organization_id: organization.id });
  await head().update({ seq: knex.raw("seq - 1") });
  const reply = await api.get(`/v1/events?cursor=${later}`);
  isInvalid(t, reply, "cursor");
  t.is((await api.get(`/v1/events?cursor=${cursor}`)).status, 200);
});

// Advances the clock, so it is the last one.
test.serial("events are listed for 30 days on every plan, unlike the audit log", async (t) => {
  const { organization, api } = await createApi();
  const { id } = await api.createLink();
  await api.send("PATCH", `/v1/links/${id}`, { json: { title: "New" } });
  const { cursor } = await readAll(organization.id, api);
  const reader = async () => apiAt(service.url, await service.token(organization));
  advanceClock(29 * DAY_MS);
  const kept = await readAll(organization.id, await reader());
  t.deepEqual(eventTypesOf(kept.events), ["link.created", "link.updated"]);
  advanceClock(DAY_MS + 1000);
  const later = await (await reader()).createLink();
  for (const after of [undefined, cursor]) {
    const { events } = await readAll(organization.id, await reader(), "limit=100", after);
    t.deepEqual(idsOf(events), [later.id]);
  }
  await purgeExpired(service.storage);
  t.is((await readAll(organization.id, await reader())).events.length, 1);
});
