import type { Check } from "../check.ts";
import type { Conversation } from "../conversation.ts";
import { expect, needs } from "../expect.ts";
import type { MetadataList } from "../target.ts";

const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
const AUTHENTICATED = ["token", "introspection", "revocation"] as const;

export function wellKnown(issuer: string, name: string): string {
  const { origin, pathname } = new URL(issuer);
  return `${origin}/.well-known/${name}${pathname === "/" ? "" : pathname}`;
}

const isLoopback = (url: string) => ["localhost", "127.0.0.1", "[::1]"].includes(new URL(url).hostname);

function isSecure(url: unknown): boolean {
  return typeof url === "string" && URL.canParse(url) && (url.startsWith("https://") || isLoopback(url));
}

function listOf({ target }: Conversation, name: MetadataList): string[] {
  return target.metadata[name] ?? [];
}

async function keysOf(conversation: Conversation) {
  const uri = needs(conversation.target.metadata.jwks_uri, "no jwks_uri");
  const { status, body } = await conversation.send(uri);
  expect(status === 200 && Array.isArray(body.keys), "jwks_uri returns no JWK Set");
  return body.keys as Record<string, unknown>[];
}

export const metadataChecks: Check[] = [
  {
    id: "metadata-document",
    title: "The metadata is a JSON object",
    clause: "RFC 8414 §3.2",
    async run(conversation) {
      const { status, headers, body } = await conversation.send(
        wellKnown(conversation.target.issuer, "oauth-authorization-server"),
      );
      if (status === 404 && conversation.target.metadata.jwks_uri)
        needs(false, "only OpenID Connect Discovery");
      expect(status === 200, `the response is ${status}`);
      expect(headers.get("content-type")?.startsWith("application/json"), "the content type is not JSON");
      expect(Object.keys(body).length > 0, "the content is no JSON object");
    },
  },
  {
    id: "metadata-issuer",
    title: "The issuer is the URL that the metadata was requested for",
    clause: "RFC 8414 §3.3",
    async run({ target }) {
      expect(target.metadata.issuer === target.issuer, `issuer is ${target.metadata.issuer}`);
    },
  },
  {
    id: "metadata-issuer-url",
    title: "The issuer is an https URL without query and fragment",
    clause: "RFC 8414 §2",
    async run({ target: { metadata } }) {
      expect(isSecure(metadata.issuer), "issuer is not an https URL");
      expect(!/[?#]/.test(metadata.issuer), "issuer has a query or a fragment");
    },
  },
  {
    id: "metadata-https",
    title: "Every endpoint is an https URL",
    clause: "RFC 8414 §2, RFC 6749 §3.1, §3.2",
    async run({ target }) {
      for (const [name, value] of Object.entries(target.metadata))
        if (/_endpoint$|^jwks_uri$/.test(name)) expect(isSecure(value), `${name} is ${value}`);
    },
  },
  {
    id: "metadata-fragment",
    title: "The endpoints have no fragment",
    clause: "RFC 6749 §3.1, §3.2",
    async run({ target }) {
      for (const [name, value] of Object.entries(target.metadata))
        if (name.endsWith("_endpoint")) expect(!String(value).includes("#"), `${name} is ${value}`);
    },
  },
  {
    id: "metadata-response-types",
    title: "The metadata lists response types",
    clause: "RFC 8414 §2",
    async run(conversation) {
      expect(
        listOf(conversation, "response_types_supported").length > 0,
        "response_types_supported is missing",
      );
    },
  },
  {
    id: "metadata-token-endpoint",
    title: "The metadata names the token endpoint",
    clause: "RFC 8414 §2",
    async run({ target }) {
      expect(target.metadata.token_endpoint, "token_endpoint is missing");
    },
  },
  {
    id: "metadata-pkce",
    title: "PKCE with S256 is announced",
    clause: "RFC 9700 §2.1.1",
    async run(conversation) {
      needs(conversation.target.metadata.authorization_endpoint, "no authorization endpoint");
      const methods = listOf(conversation, "code_challenge_methods_supported");
      expect(methods.includes("S256"), "code_challenge_methods_supported does not list S256");
    },
  },
  {
    id: "metadata-pkce-plain",
    title: "PKCE with plain is not announced",
    clause: "RFC 9700 §2.1.1",
    isRecommended: true,
    async run(conversation) {
      const methods = listOf(conversation, "code_challenge_methods_supported");
      expect(!methods.includes("plain"), "code_challenge_methods_supported lists plain");
    },
  },
  {
    id: "metadata-implicit",
    title: "The implicit grant is not offered",
    clause: "RFC 9700 §2.1.2",
    isRecommended: true,
    async run(conversation) {
      const types = listOf(conversation, "response_types_supported").flatMap((type) => type.split(" "));
      expect(!types.includes("token"), "response_types_supported lists token");
    },
  },
  {
    id: "metadata-password",
    title: "The password grant is not offered",
    clause: "RFC 9700 §2.4",
    async run(conversation) {
      expect(
        !listOf(conversation, "grant_types_supported").includes("password"),
        "grant_types_supported lists password",
      );
    },
  },
  {
    id: "metadata-iss",
    title: "The iss parameter is announced",
    clause: "RFC 9207 §2.3",
    isRecommended: true,
    async run({ target: { metadata } }) {
      needs(metadata.authorization_endpoint, "no authorization endpoint");
      const isAnnounced = metadata.authorization_response_iss_parameter_supported === true;
      expect(isAnnounced, "authorization_response_iss_parameter_supported is not true");
    },
  },
  {
    id: "metadata-auth-algs",
    title: "Algorithms are listed for JWT client authentication, without none",
    clause: "RFC 8414 §2",
    async run(conversation) {
      for (const endpoint of AUTHENTICATED) {
        const methods = listOf(conversation, `${endpoint}_endpoint_auth_methods_supported`);
        const algs = listOf(conversation, `${endpoint}_endpoint_auth_signing_alg_values_supported`);
        if (methods.some((method) => method.endsWith("_jwt")))
          expect(algs.length > 0, `no algorithms at ${endpoint}`);
        expect(!algs.includes("none"), `none is listed at ${endpoint}`);
      }
    },
  },
  {
    id: "metadata-dpop-algs",
    title: "DPoP algorithms are asymmetric",
    clause: "RFC 9449 §5.1, §11.6",
    async run(conversation) {
      const algs = listOf(conversation, "dpop_signing_alg_values_supported");
      needs(algs.length > 0, "no DPoP");
      expect(!algs.some((alg) => alg === "none" || alg.startsWith("HS")), `the algorithms are ${algs}`);
    },
  },
  {
    id: "metadata-request-object-none",
    title: "Unsigned request objects are not offered",
    clause: "RFC 9101 §10.5, RFC 9700",
    isRecommended: true,
    async run(conversation) {
      const algs = listOf(conversation, "request_object_signing_alg_values_supported");
      expect(!algs.includes("none"), "request_object_signing_alg_values_supported lists none");
    },
  },
  {
    id: "metadata-openid",
    title: "OpenID Connect Discovery and RFC 8414 agree",
    clause: "RFC 8414 §5",
    async run(conversation) {
      const { issuer, metadata } = conversation.target;
      const oidc = await conversation.send(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
      const oauth = await conversation.send(wellKnown(issuer, "oauth-authorization-server"));
      needs(oidc.status === 200 && oauth.status === 200, "only one of the documents exists");
      for (const name of Object.keys(metadata))
        if (/_endpoint$|^jwks_uri$|^issuer$/.test(name) && oidc.body[name] && oauth.body[name])
          expect(oidc.body[name] === oauth.body[name], `${name} differs`);
    },
  },
  {
    id: "metadata-id-token-algs",
    title: "ID tokens can be signed with RS256",
    clause: "OpenID Connect Discovery §3",
    async run(conversation) {
      needs(listOf(conversation, "scopes_supported").includes("openid"), "no OpenID Connect");
      const algs = listOf(conversation, "id_token_signing_alg_values_supported");
      expect(algs.includes("RS256"), `id_token_signing_alg_values_supported is ${algs}`);
    },
  },
  {
    id: "metadata-cors",
    title: "Web apps may read the metadata",
    clause: "Fetch §3.2",
    isRecommended: true,
    async run(conversation) {
      const { headers } = await conversation.send(conversation.target.metadataUrl, {
        headers: { origin: "https://app.example" },
      });
      const allowed = headers.get("access-control-allow-origin");
      expect(allowed === "*" || allowed === "https://app.example", "Access-Control-Allow-Origin is missing");
    },
  },
  {
    id: "jwks-public",
    title: "The JWK Set has no private keys",
    clause: "RFC 8414 §2, RFC 7517",
    async run(conversation) {
      for (const key of await keysOf(conversation))
        for (const member of PRIVATE_MEMBERS) expect(!(member in key), `a key has the member ${member}`);
    },
  },
  {
    id: "jwks-key-ids",
    title: "Each key has its own kid",
    clause: "RFC 7517 §4.5",
    isRecommended: true,
    async run(conversation) {
      const ids = (await keysOf(conversation)).map(({ kid }) => kid);
      expect(!ids.includes(undefined) && new Set(ids).size === ids.length, "kid is missing or not unique");
    },
  },
  {
    id: "jwks-key-size",
    title: "RSA keys have at least 2048 bits",
    clause: "RFC 7518 §3.3",
    async run(conversation) {
      for (const { kty, n } of await keysOf(conversation))
        if (kty === "RSA")
          expect(Buffer.from(String(n), "base64url").length >= 256, "an RSA key is too short");
    },
  },
];
