import test from "ava";
import { athOf, boundToken, createDpopKey, signProof } from "../../harness/clients/dpop.ts";
import { basic, read } from "../../harness/clients/oauth.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { advanceClock } from "../../harness/clock.ts";
import { purgeExpired } from "../../harness/database/purge.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const key = await createDpopKey();
test.after.always(() => service.close());

const now = () => Math.floor(Date.now() / 1000);

test.serial("a bound token in Proxy-Authorization counts as no token", async (t) => {
  const token = await boundToken(service, app, key);
  const htu = `${service.url}/v1/links`;
  const send = async (header: string) => {
    const dpop = await signProof(key, { claims: { htm: "GET", htu, ath: athOf(token) } });
    const host = new URL(service.url).host;
    const headers = ["host", host, header, `DPoP ${token}`, "dpop", dpop];
    return sendRaw(service.url, "/v1/links", { headers });
  };
  t.is((await send("authorization")).status, 200);
  const { status, headers, text } = await send("proxy-authorization");
  t.is(status, 401);
  t.is(JSON.parse(text).code, "missing_token");
  t.regex(headers["www-authenticate"] ?? "", /DPoP/);
  t.false("proxy-authenticate" in headers);
});

test.serial("a proof from a clock that is ahead is accepted once, even after a purge", async (t) => {
  const htu = `${service.url}/oauth/token`;
  const dpop = await signProof(key, { claims: { htm: "POST", htu, iat: now() + 290 } });
  const send = () => read(postForm(htu, { grant_type: "client_credentials" }, { ...basic(app), dpop }));
  t.is((await send()).status, 200);
  for (let minute = 0; minute < 10; minute++) {
    await purgeExpired(service.storage);
    t.is((await send()).status, 400, `after ${minute} minutes`);
    advanceClock(60_000);
  }
});
