import test, { type ExecutionContext } from "ava";
import { AUDIT_EVENTS, WEBHOOK_EVENTS } from "../../../../resources/events/delivered-events.ts";
import { EVENT_DATA_SCHEMAS } from "../../../../resources/events/schemas.ts";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { linkSchema } from "../../../../resources/links/schema.ts";
import {
  AUDITED_CHANGES,
  joinByInvitation,
  operateSecondFactors,
  operateSwitches,
} from "../../../harness/audited-changes.ts";
import { apiAt } from "../../../harness/clients/api.ts";
import { browserOf, createTeam, firstPartyToken } from "../../../harness/clients/dashboard.ts";
import { advanceClock } from "../../../harness/clock.ts";
import { providerSettings } from "../../../harness/providers/identity-provider.ts";
import { startReceiver } from "../../../harness/receiver.ts";
import { startTestService, type TestService } from "../../../harness/service.ts";
import { until } from "../../../harness/webhooks.ts";

type Team = Awaited<ReturnType<typeof createTeam>>;
type Entry = { type: keyof typeof EVENT_DATA_SCHEMAS; data: Record<string, unknown> };

const receiver = await startReceiver();
// The changes never ask the identity provider.
const service = await startTestService({
  ...providerSettings("http://localhost:1"),
  WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
});
test.after.always(() => Promise.all([service.close(), receiver.close()]));

/** The changes of an owner, and those that others make. */
const CHANGES: ((team: Team, service: TestService) => Promise<unknown>)[] = [
  operateSecondFactors,
  ...Object.entries(AUDITED_CHANGES)
    .filter(([type]) => type !== "member.removed")
    .map(([, change]) => change),
  joinByInvitation,
  ({ member }) =>
    member.api.send("POST", "/dashboard/account/password", {
      json: { current_password: member.password, new_password: "an entirely new password" },
    }),
  async ({ admin }) => {
    const identity = { issuer: "https://idp.example", subject: admin.id };
    await service.storage.identities.link(admin.id, { ...identity, label: null }, { id: admin.id });
    await service.storage.identities.unlink(admin.id, identity, { id: admin.id });
  },
  async ({ base, owner }) => {
    receiver.respond("/gone", (response) => response.writeHead(410).end());
    receiver.exposeVerification("/gone");
    const json = { url: receiver.url("/gone"), events: ["link.created"] };
    const { body } = await owner.api.send<{ id: string }>("POST", `${base}/webhooks`, { json });
    await until(async () => {
      const found = await owner.api.send<{ enabled: boolean }>("GET", `${base}/webhooks/${body.id}`);
      return found.body.enabled ? undefined : true;
    });
  },
  operateSwitches,
  ({ base, owner, member }) => owner.api.send("DELETE", `${base}/members/${member.id}`),
];

// The log of a deleted organization can't be read; clicks and test events aren't audited. Sign-ins, exports, replays,
// leaks and quotas have tests of their own.
const NOT_SHOWN = ["organization.deleted", "link.clicked", "webhook.test"];
const ELSEWHERE =
  /^(member\.(sign_in|reauth|logged|session|data)|audit_log|token|client\.secret_leaked|webhook\.quota)/;
const AUDITED = [...AUDIT_EVENTS, ...WEBHOOK_EVENTS].filter(
  (type) => !NOT_SHOWN.includes(type) && !ELSEWHERE.test(type),
);

const SNAKE_CASE = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
const RFC_3339_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;
// Far above every count in an event, far below any time in epoch milliseconds.
const EPOCH_MS = 1e11;

/** Asserts that every key is in snake_case and every time an RFC 3339 string, at any depth. */
function hasPublicForm(t: ExecutionContext, value: unknown, path: string): void {
  if (typeof value === "number") t.true(value < EPOCH_MS, `${path} is an epoch time`);
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value)) t.regex(key, SNAKE_CASE, path);
    if (key.endsWith("_at") && inner !== null) t.regex(String(inner), RFC_3339_UTC, `${path}.${key}`);
    hasPublicForm(t, inner, `${path}.${key}`);
  }
}

/** Returns the keys of stored data that its public form doesn't have. A link is stored with names of its own. */
function hiddenKeysOf(type: Entry["type"], data: Record<string, unknown>): string[] {
  const keys = Object.keys(data).filter((key) => !Object.hasOwn(EVENT_DATA_SCHEMAS[type].shape, key));
  const linkKeys = Object.keys(data.link ?? {}).filter(
    (key) =>
      !Object.hasOwn(
        linkSchema.shape,
        key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      ),
  );
  return [...keys.map((key) => `${type}.${key}`), ...linkKeys.map((key) => `link.${key}`)];
}

/** Parses CSV whose every field may be quoted. */
function parseCsv(text: string): Record<string, string>[] {
  const [head = [], ...rows] = text
    .replace("\uFEFF", "")
    .trim()
    .split("\n")
    .map((line) =>
      [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
        ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? "",
      ),
    );
  return rows.map((row) => Object.fromEntries(head.map((name, index) => [name, row[index] ?? ""])));
}

// Before the other test, because it moves the clock.
test.serial("changes of links more than an hour apart are separate rows of the page", async (t) => {
  const { base, owner } = await createTeam(service);
  const createLinks = async () => {
    const api = apiAt(service.url, await firstPartyToken(service, owner));
    for (let count = 0; count < 3; count++)
      await api.send("POST", `${base}/links`, { json: { url: "https://example.com/" } });
  };
  await createLinks();
  advanceClock(61 * 60_000);
  await createLinks();
  const { browser } = await browserOf(service, owner);
  const { html } = await browser.open(`${service.url}${base}/audit?type=link.created`);
  t.deepEqual(
    html.querySelectorAll("td summary").map(({ text }) => text),
    ["created 3 links", "created 3 links"],
  );
});

test("every audited event is shown with snake_case keys and RFC 3339 times, as JSON and as CSV", async (t) => {
  const team = await createTeam(service, "free");
  await service.storage.organizations.setPlan(team.organization.id, "growth", OPERATOR);
  for (const change of CHANGES) await change(team, service);

  const { data } = (await team.owner.api.send<{ data: Entry[] }>("GET", `${team.base}/audit?limit=100`)).body;
  t.deepEqual(
    AUDITED.filter((type) => !data.some((entry) => entry.type === type)),
    [],
    "not in the log",
  );
  for (const entry of data) {
    hasPublicForm(t, entry, entry.type);
    t.deepEqual(EVENT_DATA_SCHEMAS[entry.type].parse(entry.data), entry.data, entry.type);
  }

  await service.storage.audit.head(team.organization.id);
  const stored = await service.storage.audit.list(team.organization.id, {}, 100);
  const hidden = stored.flatMap(({ type, record }) => hiddenKeysOf(type, JSON.parse(record as string).data));
  t.deepEqual([...new Set(hidden)].sort(), ["link.organizationId", "link.version"], "only in the record");

  const [exported, ...rows] = parseCsv((await team.owner.api.send("GET", `${team.base}/audit.csv`)).text);
  t.is(exported?.type, "audit_log.exported");
  t.is(rows.length, data.length);
  for (const [index, { data: json, ...row }] of rows.entries()) {
    hasPublicForm(t, row, String(row.type));
    t.deepEqual(JSON.parse(json ?? ""), data[index]?.data, String(row.type));
  }
});
