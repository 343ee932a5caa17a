import { randomBytes } from "node:crypto";
import { type Backends, startBalancer } from "./balancer.ts";
import { closeAfterTests } from "./closing.ts";
import { prepareServers } from "./new-server.ts";
import { freePort, type Program } from "./program.ts";
import { serviceAt } from "./two-versions.ts";

/**
 * Starts two authorization servers and two resource servers, which introspect tokens at the former. Each is a process, and
 * all share one empty database. Clients reach the cluster under one URL, whose requests go to the servers in turn.
 */
export async function startCluster(changes: Record<string, string> = {}) {
  const ports: Backends = { authorization: [], resources: [] };
  const balancer = await startBalancer(ports);
  const { storage, start } = await prepareServers({
    BASE_URL: balancer.url,
    LOG_LEVEL: "silent",
    // On a machine that is busy with other tests, a server with less patience would rightly refuse requests.
    DATABASE_TIMEOUT: "60",
    ...changes,
  });

  /** Creates one of the processes, with a URL that reaches only this one. Its Host header is that of the cluster. */
  const member = async (kind: keyof Backends, own: Record<string, string>) => {
    const port = await freePort();
    ports[kind].push(port);
    let program: Program | undefined;
    const stop = async () => {
      const { code, stdout, stderr } = await (program as Program).stop();
      if (code !== 0) throw new Error(`a server exited with ${code}:\n${stdout}${stderr}`);
    };
    return {
      ...serviceAt(await balancer.pin(port), storage),
      stop,
      async start() {
        program = (await start({ ...own, PORT: String(port) })).server;
      },
    };
  };

  type Member = Awaited<ReturnType<typeof member>>;
  const pair = async (kind: keyof Backends, own: Record<string, string>): Promise<[Member, Member]> => [
    await member(kind, own),
    await member(kind, own),
  ];
  const secret = randomBytes(32).toString("base64url");
  const authorization = await pair("authorization", { RESOURCE_SERVER_SECRET: secret });
  const resources = await pair("resources", {
    INTROSPECTION_URL: `${balancer.url}/oauth/introspect`,
    INTROSPECTION_CLIENT_SECRET: secret,
  });
  const members = [...authorization, ...resources];
  await Promise.all(members.map((one) => one.start()));
  closeAfterTests(() => Promise.all(members.map((one) => one.stop())));

  return { ...serviceAt(balancer.url, storage), authorization, resources };
}
