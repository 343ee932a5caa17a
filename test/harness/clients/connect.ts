import type { Role } from "../../../adapters/organizations/store.ts";
import { freePort } from "../port.ts";
import { startTestService } from "../service.ts";
import { sendRaw } from "./raw.ts";

/** A step of a guide, as the page's JSON has it. */
export type StepBody = { text: string; code?: string; link?: { text: string; href: string } };
type HostBody = {
  id: string;
  name: string;
  available: boolean;
  reason: string | null;
  detail: string | null;
  steps: StepBody[];
  own_client: { redirect_uri: string; steps: StepBody[] } | null;
};

/** The JSON of the page that explains how to connect AI clients. */
export type ConnectBody = {
  mcp_url: string;
  accepts: { known_documents: boolean; other_documents: boolean; registered_clients: boolean };
  requires_dpop: boolean;
  scopes: { name: string; description: string }[];
  hosts: HostBody[];
};

/** Starts a service with a public address, behind a proxy that terminates TLS. */
export async function startPublicService(settings: Record<string, string> = {}) {
  const port = await freePort();
  const url = "https://links.example.com";
  const service = await startTestService({ BASE_URL: url, PORT: String(port), ...settings });

  /** Sends a request as the proxy does. */
  async function send(path: string, headers: string[], form?: Record<string, string>) {
    const { text } = await sendRaw(`http://127.0.0.1:${port}`, path, {
      method: form ? "POST" : "GET",
      headers: ["host", new URL(url).host, ...headers],
      ...(form && { body: new URLSearchParams(form).toString() }),
    });
    return JSON.parse(text);
  }

  return {
    service,
    /** Returns what a new member of an organization sees. */
    async connectPageOf(organizationId: string, role: Role = "owner"): Promise<ConnectBody> {
      const { username, password } = await service.createUser([organizationId], undefined, role);
      const form = ["content-type", "application/x-www-form-urlencoded"];
      const { access_token } = await send("/auth/login", form, { username, password });
      const path = `/dashboard/organizations/${organizationId}/connect`;
      return send(path, ["authorization", `Bearer ${access_token}`]);
    },
  };
}
