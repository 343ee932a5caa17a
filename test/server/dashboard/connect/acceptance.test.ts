import test, { type ExecutionContext } from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { type ConnectBody, startPublicService } from "../../../harness/clients/connect.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { startTestService } from "../../../harness/service.ts";

type HostBody = ConnectBody["hosts"][number];

/** A host that can't connect says why, and has nothing to paste. */
function hasReason(t: ExecutionContext, host: HostBody, reason: string | null): void {
  const { id, available, steps, detail } = host;
  t.is(host.reason, reason, id);
  t.is(available, reason === null, id);
  t.is(steps.length > 0, available, id);
  t.is(detail === null, available, id);
}

type Case = {
  server: "off" | "known" | "any";
  allowed: "known" | "any" | "none";
  /** Why a known host is refused for its document, and one that registers itself, if the server lets it. */
  known: string | null;
  registering: string | null;
  /** Why an unknown client is refused without and with registration. */
  other: [off: string | null, stateless: string | null];
};

const OFF = "documents_disabled";
const UNKNOWN = "unknown_client";
const NOT_ALLOWED = "not_allowed";

const CASES: Case[] = [
  { server: "off", allowed: "known", known: OFF, registering: null, other: [UNKNOWN, null] },
  { server: "off", allowed: "any", known: OFF, registering: null, other: [UNKNOWN, null] },
  { server: "off", allowed: "none", known: OFF, registering: NOT_ALLOWED, other: [UNKNOWN, NOT_ALLOWED] },
  { server: "known", allowed: "known", known: null, registering: null, other: [UNKNOWN, null] },
  { server: "known", allowed: "any", known: null, registering: null, other: [UNKNOWN, null] },
  {
    server: "known",
    allowed: "none",
    known: NOT_ALLOWED,
    registering: NOT_ALLOWED,
    other: [UNKNOWN, NOT_ALLOWED],
  },
  {
    server: "any",
    allowed: "known",
    known: null,
    registering: null,
    other: [NOT_ALLOWED, null],
  },
  { server: "any", allowed: "any", known: null, registering: null, other: [null, null] },
  {
    server: "any",
    allowed: "none",
    known: NOT_ALLOWED,
    registering: NOT_ALLOWED,
    other: [NOT_ALLOWED, NOT_ALLOWED],
  },
];

for (const server of ["off", "known", "any"] as const) {
  for (const registration of ["off", "stateless"] as const) {
    test(`with CIMD=${server} and DYNAMIC_REGISTRATION=${registration}, an organization sees which hosts it accepts`, async (t) => {
      const settings = { CIMD: server, DYNAMIC_REGISTRATION: registration };
      const { service, connectPageOf } = await startPublicService(settings);
      const mayRegister = registration === "stateless";
      for (const { allowed, known, registering, other } of CASES.filter((one) => one.server === server)) {
        const { id } = await service.createOrganization();
        await service.storage.organizationSettings.change(id, { allowedClients: allowed }, OPERATOR);
        const { accepts, hosts } = await connectPageOf(id);
        const expected = {
          known_documents: known === null,
          other_documents: server === "any" && allowed === "any",
          registered_clients: mayRegister && registering === null,
        };
        t.deepEqual(accepts, expected, allowed);
        const reasons: Record<string, string | null> = {
          cursor: mayRegister ? registering : "registration_disabled",
          gemini: mayRegister ? registering : "registration_disabled",
          vscode: mayRegister ? registering : known, // registers itself if it can
          other: other[mayRegister ? 1 : 0],
        };
        for (const host of hosts) hasReason(t, host, host.id in reasons ? (reasons[host.id] ?? null) : known);
      }
      await service.close();
    });
  }
}

test("hosts that connect from their vendor’s servers don’t reach a server on localhost", async (t) => {
  const service = await startTestService();
  const { base, owner } = await createTeam(service);
  const { hosts } = (await owner.api.send<ConnectBody>("GET", `${base}/connect`)).body;
  await service.close();
  for (const id of ["claude", "chatgpt"]) {
    const host = hosts.find((one) => one.id === id) as HostBody;
    hasReason(t, host, "local_server");
    t.is(host.own_client, null, "a client ID and secret would not help");
  }
  hasReason(t, hosts.find(({ id }) => id === "claude-code") as HostBody, null);
});

test("hosts that send no DPoP proofs are not available to an organization that requires them", async (t) => {
  const { service, connectPageOf } = await startPublicService({ CIMD: "any" });
  const { id } = await service.createOrganization();
  await service.storage.organizationSettings.change(id, { allowedClients: "any" }, OPERATOR);
  t.false((await connectPageOf(id)).requires_dpop);
  await service.storage.organizationSettings.change(id, { requiresDpop: true }, OPERATOR);
  const { requires_dpop, hosts } = await connectPageOf(id);
  await service.close();
  t.true(requires_dpop);
  for (const host of hosts) {
    hasReason(t, host, host.id === "other" ? null : "dpop_required");
    t.is(host.own_client, null, "a client ID and secret would not help");
  }
});

test("no host is available on the Free plan", async (t) => {
  const { service, connectPageOf } = await startPublicService();
  const { organization } = await service.storage.organizations.create("Free", "free", OPERATOR);
  const { hosts } = await connectPageOf(organization.id);
  await service.close();
  for (const host of hosts) {
    hasReason(t, host, "plan_required");
    t.is(host.own_client, null);
  }
});
