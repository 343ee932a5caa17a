import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";

type Claims = JWTPayload & Record<string, unknown>;
type Key = Awaited<ReturnType<typeof generateKeyPair>> & { kid: string };
type Route = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A platform that gives tokens to its jobs: a real HTTP server with discovery, keys, and tokens signed by them. */
export type TokenIssuer = {
  issuer: string;
  /** The current key pair. */
  readonly key: Key;
  /** The paths that were requested, in order. */
  requests: string[];
  /** Signs claims with the current key. `undefined` removes a claim. */
  sign(claims: Claims, header?: Record<string, unknown>): Promise<string>;
  /** Replaces the keys: new tokens are signed with a key that wasn't published before. */
  rotateKeys(): Promise<void>;
  /** Answers every request with an error until `restore` is called. */
  breakDown(): { restore(): void };
  /** Sets the response at a path. */
  respond(path: string, route: Route): void;
  stop(): Promise<void>;
};

/** Starts a token issuer on loopback. The caller stops it. */
export async function startTokenIssuer(): Promise<TokenIssuer> {
  let key = await newKey();
  let isBroken = false;
  const requests: string[] = [];
  const routes = new Map<string, Route>();
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "", "http://localhost").pathname;
    requests.push(path);
    const route = routes.get(path);
    if (isBroken) return void response.writeHead(503).end();
    if (route) return void route(request, response);
    response.writeHead(404).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;

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
    sign: (claims, header) => signWith(key, claims, header),
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
    respond: (path, route) => void routes.set(path, route),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function newKey(): Promise<Key> {
  return { ...(await generateKeyPair("RS256", { extractable: true })), kid: randomUUID() };
}

async function signWith({ kid, privateKey }: Key, claims: Claims, header: object = {}): Promise<string> {
  const present = Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined));
  return new SignJWT(present)
    .setProtectedHeader({ alg: "RS256", typ: "JWT", kid, ...header })
    .sign(privateKey);
}

/** Signs claims with a key that the issuer never published. */
export async function signWithForeignKey(claims: Claims, kid: string): Promise<string> {
  return signWith({ ...(await newKey()), kid }, claims);
}

/** Responds with JSON. */
export function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

const now = () => Math.floor(Date.now() / 1000);

/** The claims of a GitHub Actions job on the branch main: every value but the times is a string. */
export function githubClaims(issuer: string, audience: string): Claims {
  const iat = now();
  return {
    jti: randomUUID(),
    sub: "repo:octo-org@65/octo-repo@74:ref:refs/heads/main",
    aud: audience,
    ref: "refs/heads/main",
    sha: "7fd1a60b01f91b314f59955a4e4d4e80d8edf11d",
    repository: "octo-org/octo-repo",
    repository_id: "74",
    repository_owner: "octo-org",
    repository_owner_id: "65",
    repository_visibility: "private",
    run_id: "1234567890",
    run_number: "10",
    run_attempt: "1",
    actor: "octocat",
    actor_id: "12",
    workflow: "link",
    workflow_ref: "octo-org/octo-repo/.github/workflows/link.yml@refs/heads/main",
    job_workflow_ref: "octo-org/octo-repo/.github/workflows/link.yml@refs/heads/main",
    event_name: "push",
    ref_type: "branch",
    ref_protected: "true",
    head_ref: "",
    base_ref: "",
    runner_environment: "github-hosted",
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
    namespace_path: "my-group",
    project_id: "20",
    project_path: "my-group/my-project",
    user_id: "1",
    user_login: "sample-user",
    user_email: "sample-user@example.com",
    user_access_level: "developer",
    pipeline_id: "574",
    pipeline_source: "push",
    job_id: "302",
    ref: "main",
    ref_type: "branch",
    ref_path: "refs/heads/main",
    ref_protected: "true",
    groups_direct: ["my-group"],
    runner_id: 1,
    runner_environment: "gitlab-hosted",
    sha: "714a629c0b401fdce83e847fc9589983fc6f46bc",
    project_visibility: "private",
    ci_config_ref_uri: "gitlab.com/my-group/my-project//.gitlab-ci.yml@refs/heads/main",
    ci_config_sha: "714a629c0b401fdce83e847fc9589983fc6f46bc",
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
    "kubernetes.io": {
      namespace: "my-namespace",
      node: { name: "node-1", uid: "58456cb0-dd00-45ed-b797-5578fdceaced" },
      pod: { name: "create-link-x7k2p", uid: "778a530c-b3f4-47c0-9cd5-ab018fb64f33" },
      serviceaccount: { name: "my-service-account", uid: "a087d5a0-e1dd-43ec-93ac-f13d89cd13af" },
      warnafter: iat + 480,
    },
    nbf: iat,
    sub: "system:serviceaccount:my-namespace:my-service-account",
  };
}
