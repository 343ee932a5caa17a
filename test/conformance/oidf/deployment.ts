import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { addressOf, type Program, resultOf, startServer } from "../../harness/program.ts";

export const REDIRECT_URI = "https://suite.example.com/callback";

export type Client = { id: string; secret: string; organizationId: string };

/** Runs a command of the operator. */
export type Run = <Result>(words: string[], input?: string) => Promise<Result>;

/** A server, as its operator would start it, with what the suite is configured with. */
export type Deployment = {
  issuer: string;
  /** The client under test, and that of another organization. */
  clients: [Client, Client];
  user: { username: string; password: string };
  folder: string;
  run: Run;
  stop(): Promise<void>;
};

/** Starts a server as a process, and sets it up by its commands. */
export async function deploy(): Promise<Deployment> {
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-oidf-"));
  const settings = { PORT: "0", DATABASE_URL: `sqlite:${folder}/linkgate.sqlite`, RATE_LIMIT: "off" };
  const server: Program = startServer({ settings });
  const issuer = await addressOf(server);

  const run: Run = (words, input) => resultOf(words, { settings }, input);
  const clients: [Client, Client] = [await createClient(run), await createClient(run)];
  const user = { username: "suite-user", password: randomUUID() };
  await run(
    ["user", "create", user.username, "--org", clients[0].organizationId, "--role", "owner"],
    user.password,
  );
  return {
    issuer,
    clients,
    user,
    folder,
    run,
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Creates an organization with a client. */
export async function createClient(run: Run, redirectUris = [REDIRECT_URI]): Promise<Client> {
  const { organization, client } = await run<{
    organization: { id: string };
    client: { client_id: string; client_secret: string };
  }>(["org", "create", `Relying party ${randomUUID()}`, "--plan", "growth"]);
  await run(["client", "redirect-uris", organization.id, ...redirectUris]);
  return { id: client.client_id, secret: client.client_secret, organizationId: organization.id };
}
