import type { ExecutionContext } from "ava";
import { challengesIn } from "./clients/challenge.ts";
import { athOf, boundToken, createDpopKey, type Proof, signProof } from "./clients/dpop.ts";
import { MCP_HEADERS, modernRequest } from "./clients/mcp.ts";
import { sendRaw } from "./clients/raw.ts";
import { freePort } from "./port.ts";
import { startTestService } from "./service.ts";

/** A request that a resource accepts with a valid proof. */
export type Target = {
  name: string;
  server: string;
  method: string;
  path: string;
  headers: object;
  body?: string;
};

const SECRET = "a-secret-of-the-resource-server-0123456789";
const LIST_TOOLS = modernRequest("tools/list");
const REST = { method: "GET", path: "/v1/links", headers: {} };
const MCP = {
  method: "POST",
  path: "/mcp",
  headers: { ...MCP_HEADERS, ...LIST_TOOLS.headers },
  body: JSON.stringify(LIST_TOOLS.message),
};

/** Starts a service, and a resource server with a database of its own that asks the service about tokens. */
export async function startDpopTargets() {
  const service = await startTestService({ RESOURCE_SERVER_SECRET: SECRET });
  const port = await freePort();
  // It serves the URLs of the service, as behind a proxy that sends it the requests for resources.
  const resourceServer = await startTestService({
    PORT: String(port),
    BASE_URL: service.url,
    INTROSPECTION_URL: `${service.url}/oauth/introspect`,
    INTROSPECTION_CLIENT_SECRET: SECRET,
  });
  const app = await service.createOrganization();
  const [key, otherKey] = await Promise.all([createDpopKey(), createDpopKey()]);
  const token = await boundToken(service, app, key);
  const apart = `http://127.0.0.1:${port}`;
  const { host } = new URL(service.url);

  return {
    service,
    app,
    key,
    otherKey,
    token,
    bearerToken: await service.token(app),
    api: { name: "the API", server: service.url, ...REST } satisfies Target,
    targets: [
      { name: "the API", server: service.url, ...REST },
      { name: "MCP", server: service.url, ...MCP },
      { name: "the API of a resource server", server: apart, ...REST },
      { name: "MCP of a resource server", server: apart, ...MCP },
    ] satisfies Target[],

    /** Sends the request of a target with these `DPoP` headers. */
    async send(target: Target, proofs: string[], authorization = `DPoP ${token}`, query = "") {
      const { server, method, path, headers, body } = target;
      const answer = await sendRaw(server, path + query, {
        method,
        headers: [
          ...Object.entries({ ...headers, host, authorization }).flat(),
          ...proofs.flatMap((proof) => ["dpop", proof]),
        ],
        ...(body && { body }),
      });
      return { ...answer, nonce: answer.headers["dpop-nonce"] as string | undefined };
    },

    /** Signs a valid proof for the request of a target, with changes. */
    proofFor({ method, path }: Target, { header, claims }: Proof = {}, signer = key, ofToken = token) {
      return signProof(signer, {
        ...(header && { header }),
        claims: { htm: method, htu: service.url + path, ath: athOf(ofToken), ...claims },
      });
    },

    close: () => Promise.all([service.close(), resourceServer.close()]),
  };
}

/** The response of a target. */
export type TargetAnswer = Awaited<ReturnType<Awaited<ReturnType<typeof startDpopTargets>>["send"]>>;

/** Asserts that a request was rejected: the status, the code of the problem, and the challenge of the DPoP scheme. */
export function isRejected(t: ExecutionContext, { status, headers, text }: TargetAnswer, code: string): void {
  t.is(status, 401, text);
  const problem = JSON.parse(text);
  t.is(problem.code, code, text);
  const { DPoP, Bearer } = challengesIn(headers["www-authenticate"] ?? "");
  t.is(DPoP?.error, code);
  t.is(DPoP?.error_description, problem.detail);
  t.is(DPoP?.algs, "ES256 Ed25519 EdDSA");
  t.truthy(DPoP?.scope);
  t.regex(DPoP?.resource_metadata ?? "", /\/\.well-known\/oauth-protected-resource\/(v1|mcp)$/);
  t.is(Bearer, undefined);
}
