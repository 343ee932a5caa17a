import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { startApp } from "../clients/app-server.ts";
import { now } from "../clock.ts";

type Claims = JWTPayload & Record<string, unknown>;
type Key = Awaited<ReturnType<typeof generateKeyPair>> & { kid: string };
type Route = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A platform that gives tokens to its jobs: a real HTTP server with discovery, keys, and tokens signed by them. */
export type TokenIssuer = Awaited<ReturnType<typeof startTokenIssuer>>;

/** Starts a token issuer on loopback. */
export async function startTokenIssuer() {
  let key = await newKey();
  let isBroken = false;
  const requests: string[] = [];
  const routes = new Map<string, Route>();
  const { port, close } = await startApp((request, response) => {
    const path = new URL(request.url ?? "", "http://localhost").pathname;
    requests.push(path);
    const route = routes.get(path);
    if (isBroken) return void response.writeHead(503).end();
    if (route) return void route(request, response);
    response.writeHead(404).end();
  });
  const issuer = `http://localhost:${port}`;

  routes.set("/.well-known/openid-configuration", (_request, response) =>
    sendJson(response, { issuer, jwks_uri: `${issuer}/jwks` }),
  );
  routes.set("/jwks", async (_request, response) => {
    const { kid, publicKey } = key;
    sendJson(response, { keys: [{ ...(await exportJWK(publicKey)), kid, alg: "RS256", use: "sig" }] });
  });

  return {
    issuer,
    requests,
    get key() {
      return key;
    },
    /** Signs claims with the current key. `undefined` removes a claim. */
    sign: (claims: Claims, header?: Record<string, unknown>) => signWith(key, claims, header),
    async rotateKeys() {
      key = await newKey();
    },
    breakDown() {
      isBroken = true;
      return {
        restore() {
          isBroken = false;
        },
      };
    },
    respond: (path: string, route: Route) => void routes.set(path, route),
    stop: close,
  };
}

async function newKey(): Promise<Key> {
  return { ...(await generateKeyPair("RS256", { extractable: true })), kid: randomUUID() };
}

async function signWith({ kid, privateKey }: Key, claims: Claims, header: object = {}): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: "RS256", typ: "JWT", kid, ...header })
    .sign(privateKey);
}

/** Signs claims with a key that the issuer never published. */
export async function signWithForeignKey(claims: Claims, kid: string, header?: object): Promise<string> {
  return signWith({ ...(await newKey()), kid }, claims, header);
}

export function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** The claims of a GitHub Actions job on the branch main: every value but the times is a string. */
export function githubClaims(issuer: string, audience: string): Claims {
  const iat = now();
  return {
    jti: randomUUID(),
    sub: "repo:octo-org@65/octo-repo@74:ref:refs/heads/main",
    aud: audience,
    ref: "refs/heads/main",
    repository: "octo-org/octo-repo",
    repository_id: "74",
    repository_owner_id: "65",
    run_id: "1234567890",
    run_attempt: "1",
    ref_protected: "true",
    head_ref: "",
    iss: issuer,
    // GitHub allows for slow clocks.
    nbf: iat - 600,
    exp: iat + 300,
    iat,
  };
}

/** The claims of a GitLab CI/CD job: most values are strings, the runner's id is a number. */
export function gitlabClaims(issuer: string, audience: string): Claims {
  const iat = now();
  return {
    namespace_id: "72",
    project_path: "my-group/my-project",
    ref_protected: "true",
    groups_direct: ["my-group"],
    runner_id: 1,
    jti: randomUUID(),
    iat,
    nbf: iat - 5,
    exp: iat + 3600,
    iss: issuer,
    sub: "project_path:my-group/my-project:ref_type:branch:ref:main",
    aud: audience,
  };
}

/** The claims of a projected service account token: a list as audience, and the pod in a claim of its own. */
export function kubernetesClaims(issuer: string, audience: string): Claims {
  const iat = now();
  return {
    aud: [audience],
    exp: iat + 600,
    iat,
    iss: issuer,
    jti: randomUUID(),
    "kubernetes.io": { namespace: "my-namespace", serviceaccount: { name: "my-service-account" } },
    nbf: iat,
    sub: "system:serviceaccount:my-namespace:my-service-account",
  };
}
