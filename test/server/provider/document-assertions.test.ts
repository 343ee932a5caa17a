import test from "ava";
import { decodeJwt } from "jose";
import { OPERATOR } from "../../../resources/events/types.ts";
import {
  authorizeUrlOf,
  connectDocument,
  createSigningKey,
  type DocumentClient,
  postAsDocument,
  signAssertion,
} from "../../harness/clients/document-client.ts";
import { createDpopKey, signProof } from "../../harness/clients/dpop.ts";
import { allow, isAcceptedByApi, read, VERIFIER } from "../../harness/clients/oauth.ts";
import { startPublisher } from "../../harness/publisher.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const DOCUMENT = "https://agent.example/client.json";
const KEYS = "https://agent.example/jwks.json";

const publisher = await startPublisher(["agent.example"]);
const service = await startTestService({ ...publisher.settings, CIMD: "any" }, publisher.connections);
const client: DocumentClient = {
  clientId: DOCUMENT,
  redirectUri: "https://agent.example/callback",
  key: await createSigningKey(),
};
publisher.publish(DOCUMENT, {
  body: {
    client_id: DOCUMENT,
    redirect_uris: [client.redirectUri],
    grant_types: ["authorization_code", "refresh_token"],
    token_endpoint_auth_method: "private_key_jwt",
    jwks_uri: KEYS,
  },
});
publisher.publish(KEYS, { body: { keys: [client.key?.jwk] } });

const organization = await service.createOrganization();
await service.storage.organizationSettings.change(organization.id, { allowedClients: "any" }, OPERATOR);
const user = await service.createUser([organization.id]);
test.after.always(async () => {
  publisher.close();
  await service.close();
});

const refresh = (token: string) =>
  postAsDocument(service, "token", client, { grant_type: "refresh_token", refresh_token: token });

test.serial(
  "a client that authenticates by assertions gets tokens, which it can refresh and revoke",
  async (t) => {
    const { accessToken, refreshToken } = await connectDocument(service, client, user);
    t.true(await isAcceptedByApi(service, accessToken));
    const { status, body } = await refresh(refreshToken);
    t.is(status, 200);
    t.is((await postAsDocument(service, "revoke", client, { token: String(body.access_token) })).status, 200);
    t.false(await isAcceptedByApi(service, String(body.access_token)));
    t.false(await isAcceptedByApi(service, accessToken));
  },
);

test.serial("five token requests fetch the document and the keys once each", async (t) => {
  const fresh = await startTestService({ ...publisher.settings, CIMD: "any" }, publisher.connections);
  t.teardown(() => fresh.close());
  const own = await fresh.createOrganization();
  await fresh.storage.organizationSettings.change(own.id, { allowedClients: "any" }, OPERATOR);
  publisher.requests.length = 0;
  let { refreshToken } = await connectDocument(fresh, client, await fresh.createUser([own.id]));
  for (let request = 0; request < 4; request += 1) {
    const fields = { grant_type: "refresh_token", refresh_token: refreshToken };
    const { status, body } = await postAsDocument(fresh, "token", client, fields);
    t.is(status, 200);
    refreshToken = String(body.refresh_token);
  }
  t.deepEqual(publisher.requests.toSorted(), [DOCUMENT, KEYS]);
});

test.serial("of twenty parallel uses of one assertion, exactly one succeeds", async (t) => {
  const { refreshToken } = await connectDocument(service, client, user);
  const fields = {
    grant_type: "refresh_token",
    refresh_token: refreshToken,
    client_assertion_type: ASSERTION_TYPE,
    client_assertion: await signAssertion(service, client),
  };
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => read(postForm(`${service.url}/oauth/token`, fields))),
  );
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [200, ...Array(19).fill(401)]);
  for (const { status, body } of answers) if (status !== 200) t.is(body.error, "invalid_client");
  const late = await read(postForm(`${service.url}/oauth/token`, fields));
  t.is(late.status, 401);
  t.regex(String(late.body.error_description), /already used/);
});

test.serial("an assertion of another key, for another server, or none at all is rejected", async (t) => {
  const callback = await allow(service, user, authorizeUrlOf(service, client));
  const code = callback.searchParams.get("code") ?? "";
  const redeem = (by: DocumentClient, fields: Record<string, string> = {}) =>
    postAsDocument(service, "token", by, {
      grant_type: "authorization_code",
      code,
      redirect_uri: client.redirectUri,
      code_verifier: VERIFIER,
      ...fields,
    });
  const elsewhere = await signAssertion({ ...service, url: "https://other.example" }, client);
  t.is(decodeJwt(elsewhere).aud, "https://other.example");
  const { key: _, ...keyless } = client;
  const refused = [
    await redeem({ ...client, key: await createSigningKey() }),
    await redeem(client, { client_assertion: elsewhere }),
    await redeem(keyless),
    await redeem(keyless, { client_secret: "kept-as-a-hash" }),
  ];
  for (const { status, body, text } of refused) {
    t.is(status, 401, text);
    t.is(body.error, "invalid_client");
  }
  // None of them has used the code.
  t.is((await redeem(client)).status, 200);
});

test.serial("the only algorithm that a document allows is required", async (t) => {
  const clientId = "https://agent.example/strict.json";
  const [key, other] = [await createSigningKey("ES384"), await createSigningKey("RS256")];
  publisher.publish(clientId, {
    body: {
      client_id: clientId,
      redirect_uris: [client.redirectUri],
      token_endpoint_auth_method: "private_key_jwt",
      token_endpoint_auth_signing_alg: "ES384",
      jwks: { keys: [key.jwk, other.jwk] },
    },
  });
  const introspect = (by: typeof key) =>
    postAsDocument(service, "introspect", { ...client, clientId, key: by }, { token: "a" });
  t.is((await introspect(key)).status, 200);
  const { status, body } = await introspect(other);
  t.is(status, 401);
  t.is(body.error_description, "client_assertion is invalid: alg must be ES384");
});

test.serial(
  "a client whose document says that it always uses DPoP gets no token without a proof",
  async (t) => {
    const bound = { ...client, clientId: "https://agent.example/bound.json" };
    const key = await createDpopKey();
    publisher.publish(bound.clientId, {
      body: {
        client_id: bound.clientId,
        redirect_uris: [client.redirectUri],
        grant_types: ["authorization_code", "refresh_token"],
        token_endpoint_auth_method: "private_key_jwt",
        jwks_uri: KEYS,
        dpop_bound_access_tokens: true,
      },
    });
    const callback = await allow(service, user, authorizeUrlOf(service, bound));
    const fields = {
      grant_type: "authorization_code",
      code: callback.searchParams.get("code") ?? "",
      redirect_uri: client.redirectUri,
      code_verifier: VERIFIER,
    };
    const withProof = async (more: Record<string, string>) => {
      const htu = `${service.url}/oauth/token`;
      const dpop = await signProof(key, { claims: { htm: "POST", htu } });
      const client_assertion = await signAssertion(service, bound);
      return read(
        postForm(htu, { client_assertion_type: ASSERTION_TYPE, client_assertion, ...more }, { dpop }),
      );
    };
    t.is((await postAsDocument(service, "token", bound, fields)).status, 400);
    const first = await withProof(fields);
    t.is(first.status, 200, first.text);
    t.is(first.body.token_type, "DPoP");
    const again = { grant_type: "refresh_token", refresh_token: String(first.body.refresh_token) };
    t.is((await postAsDocument(service, "token", bound, again)).status, 400);
    t.is((await withProof(again)).body.token_type, "DPoP");
  },
);

test.serial(
  "a client with a document introspects its own tokens only, and gets none for itself",
  async (t) => {
    const { accessToken } = await connectDocument(service, client, user);
    const introspect = async (token: string) =>
      (await postAsDocument(service, "introspect", client, { token })).body;
    t.true((await introspect(accessToken)).active);
    t.deepEqual(await introspect(await service.token(organization)), { active: false });
    const own = await postAsDocument(service, "token", client, { grant_type: "client_credentials" });
    t.is(own.status, 400);
    t.is(own.body.error, "unauthorized_client");
  },
);
