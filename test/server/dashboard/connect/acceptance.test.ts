import test, { type ExecutionContext } from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { type ConnectBody, startPublicService } from "../../../harness/clients/connect.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { startTestService } from "../../../harness/service.ts";

/** The hosts that register themselves; all others but `other` publish a metadata document. */
const REGISTERING = ["cursor", "gemini"];

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
  settings: Record<string, string>;
  /** What the organization allows, if it isn't the default. */
  allowed?: "any" | "none";
  accepts: [known: boolean, other: boolean, registered: boolean];
  documents: string | null;
  registration: string | null;
  other: string | null;
};

const CASES: Case[] = [
  {
    settings: {},
    accepts: [true, false, false],
    documents: null,
    registration: "registration_disabled",
    other: "unknown_client",
  },
  {
    settings: { CIMD: "off" },
    accepts: [false, false, false],
    documents: "documents_disabled",
    registration: "registration_disabled",
    other: "unknown_client",
  },
  {
    settings: { CIMD: "any" },
    accepts: [true, false, false],
    documents: null,
    registration: "registration_disabled",
    other: "documents_disallowed",
  },
  {
    settings: { CIMD: "any" },
    allowed: "any",
    accepts: [true, true, false],
    documents: null,
    registration: "registration_disabled",
    other: null,
  },
  {
    settings: {},
    allowed: "none",
    accepts: [false, false, false],
    documents: "documents_disallowed",
    registration: "registration_disabled",
    other: "unknown_client",
  },
];

for (const { settings, allowed, accepts, documents, registration, other } of CASES) {
  const conditions = JSON.stringify({ ...settings, ...(allowed && { allowed }) });
  test(`with ${conditions}, a host is available if the server and the organization accept it`, async (t) => {
    const { service, connectPageOf } = await startPublicService(settings);
    const { id } = await service.createOrganization();
    if (allowed) await service.storage.allowedClients.set(id, allowed, OPERATOR);
    const body = await connectPageOf(id);
    await service.close();
    const [known_documents, other_documents, registered_clients] = accepts;
    t.deepEqual(body.accepts, { known_documents, other_documents, registered_clients });
    for (const host of body.hosts) {
      const byDocument = host.id === "other" ? other : documents;
      hasReason(t, host, REGISTERING.includes(host.id) ? registration : byDocument);
    }
  });
}

test("hosts that connect from their vendor’s servers don’t reach a server on localhost", async (t) => {
  const service = await startTestService({});
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

test("no host is available on the Free plan", async (t) => {
  const { service, connectPageOf } = await startPublicService({});
  const { organization } = await service.storage.organizations.create("Free", "free", OPERATOR);
  const { hosts } = await connectPageOf(organization.id);
  await service.close();
  for (const host of hosts) {
    hasReason(t, host, "plan_required");
    t.is(host.own_client, null);
  }
});
