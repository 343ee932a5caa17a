import test from "ava";
import { athOf, boundToken, createDpopKey, signProof } from "../harness/clients/dpop.ts";
import { basic, read } from "../harness/clients/oauth.ts";
import { startCluster } from "../harness/cluster.ts";
import { atOnce } from "../harness/database/storage.ts";
import { postForm, type TestService } from "../harness/service.ts";

const cluster = await startCluster();
const app = await cluster.createOrganization();
const key = await createDpopKey();
test.after.always(() => cluster.close());

const ROUNDS = 10;
const one = (servers: [TestService, TestService], index: number) => servers[index % 2] as TestService;

test.serial(
  "of concurrent calls with one proof at both resource servers, exactly one succeeds",
  async (t) => {
    const token = await boundToken(cluster, app, key);
    for (let round = 0; round < ROUNDS; round++) {
      const claims = { htm: "GET", htu: `${cluster.url}/v1/links`, ath: athOf(token) };
      const headers = { authorization: `DPoP ${token}`, dpop: await signProof(key, { claims }) };
      const answers = await atOnce(20, (index) =>
        read(fetch(`${one(cluster.resources, index).url}/v1/links`, { headers })),
      );
      t.is(answers.filter(({ status }) => status === 200).length, 1);
      for (const { status, body, text } of answers.filter((answer) => answer.status !== 200)) {
        t.is(status, 401, text);
        t.is(body.code, "invalid_dpop_proof");
      }
    }
  },
);

test.serial(
  "of concurrent token requests with one proof at both servers, exactly one succeeds",
  async (t) => {
    for (let round = 0; round < ROUNDS; round++) {
      const claims = { htm: "POST", htu: `${cluster.url}/oauth/token` };
      const headers = { ...basic(app), dpop: await signProof(key, { claims }) };
      const answers = await atOnce(20, (index) =>
        read(
          postForm(
            `${one(cluster.authorization, index).url}/oauth/token`,
            { grant_type: "client_credentials" },
            headers,
          ),
        ),
      );
      t.is(answers.filter(({ status }) => status === 200).length, 1);
      for (const { status, body, text } of answers.filter((answer) => answer.status !== 200)) {
        t.is(status, 400, text);
        t.is(body.error, "invalid_grant");
      }
    }
  },
);

test.serial("a nonce of one server is valid at all of them", async (t) => {
  const token = await boundToken(cluster, app, key);
  const call = async (server: TestService, nonce?: string | null) => {
    const claims = {
      htm: "GET",
      htu: `${cluster.url}/v1/links`,
      ath: athOf(token),
      nonce: nonce ?? undefined,
    };
    const headers = { authorization: `DPoP ${token}`, dpop: await signProof(key, { claims }) };
    return read(fetch(`${server.url}/v1/links`, { headers }));
  };
  const nonce = (await call(cluster.resources[0])).headers.get("dpop-nonce");
  t.truthy(nonce);
  t.is((await call(cluster.resources[1], nonce)).status, 200);
  const claims = { htm: "POST", htu: `${cluster.url}/oauth/token`, nonce };
  const headers = { ...basic(app), dpop: await signProof(key, { claims }) };
  const fields = { grant_type: "client_credentials" };
  t.is((await postForm(`${cluster.url}/oauth/token`, fields, headers)).status, 200);
});
