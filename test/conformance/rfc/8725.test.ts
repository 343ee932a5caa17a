import { sign } from "node:crypto";
import test from "ava";
import { exportJWK, importJWK, SignJWT } from "jose";
import { createKeyFor, withAssertion } from "../../harness/clients/client-key.ts";
import { read } from "../../harness/clients/oauth.ts";
import {
  createTrustingOrganization,
  exchange,
  isRefused,
  jobToken,
  UNTRUSTED,
} from "../../harness/clients/workload.ts";
import { githubClaims, startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const [service, issuer] = await Promise.all([startTestService(), startTokenIssuer()]);
test.after.always(() => Promise.all([service.close(), issuer.stop()]));

test("a key that its issuer published for one algorithm verifies no other", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const { kid, privateKey } = issuer.key;
  const key = await importJWK({ ...(await exportJWK(privateKey)), alg: "PS256" });
  const token = await new SignJWT(githubClaims(issuer.issuer, service.url))
    .setProtectedHeader({ alg: "PS256", typ: "JWT", kid })
    .sign(key);
  isRefused(t, "grant", await exchange(service, organization, "grant", token), UNTRUSTED);
  const same = await jobToken(service, issuer);
  t.is((await exchange(service, organization, "grant", same)).status, 200);
});

test("an assertion in another encoding than UTF-8 is refused", async (t) => {
  const app = await service.createOrganization();
  const { privateKey } = await createKeyFor(service, app);
  const key = { key: await exportJWK(privateKey), format: "jwk", dsaEncoding: "ieee-p1363" } as const;
  const encode = (part: object, encoding: BufferEncoding) =>
    Buffer.from(JSON.stringify(part), encoding).toString("base64url");
  const request = async (ofHeader: BufferEncoding, ofClaims: BufferEncoding) => {
    const iat = Math.floor(Date.now() / 1000);
    const id = { iss: app.clientId, sub: app.clientId, aud: service.url, jti: crypto.randomUUID() };
    const content = `${encode({ alg: "ES256" }, ofHeader)}.${encode({ ...id, iat, exp: iat + 60 }, ofClaims)}`;
    const signature = sign("sha256", Buffer.from(content), key).toString("base64url");
    const fields = withAssertion(`${content}.${signature}`, { client_id: app.clientId });
    return (await read(postForm(`${service.url}/oauth/token`, fields))).status;
  };
  t.is(await request("utf8", "utf8"), 200);
  t.is(await request("utf8", "utf16le"), 401);
  t.is(await request("utf16le", "utf8"), 401);
  t.is(await request("utf16le", "utf16le"), 401);
});
