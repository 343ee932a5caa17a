import test from "ava";
import { basic, createApp, runCodeFlow } from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { startCluster } from "../harness/cluster.ts";
import { bearer, postForm } from "../harness/service.ts";

export const databases = "all";

const ROUNDS = 20;
const CALLS = 50;
const LANES = 10;

const cluster = await startCluster();
test.after.always(() => cluster.close());

test(`of ${ROUNDS * CALLS} calls that race revocations over two processes, none that began later succeeds`, async (t) => {
  const { app, user } = await createApp(cluster);
  const browser = new TestBrowser(cluster.url);
  let calls = 0;
  let accepted = 0;
  const late: object[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const { accessToken } = await runCodeFlow(cluster, app, user, { browser });
    const succeeded: number[] = [];
    const lane = async (index: number) => {
      for (let call = 0; call < CALLS / LANES; call++) {
        const server = cluster.resources[(index + call) % 2] ?? cluster;
        const began = Date.now();
        const { status } = await fetch(`${server.url}/v1/organization`, { headers: bearer(accessToken) });
        calls++;
        if (status === 200) succeeded.push(began);
      }
    };
    const revoking = async () => {
      const { url } = cluster.authorization[round % 2] ?? cluster;
      const { status } = await postForm(`${url}/oauth/revoke`, { token: accessToken }, basic(app));
      t.is(status, 200);
      return Date.now();
    };
    const lanes = Array.from({ length: LANES }, (_, index) => lane(index));
    const [revokedAt] = await Promise.all([revoking(), ...lanes]);
    accepted += succeeded.length;
    late.push(
      ...succeeded.filter((began) => began > revokedAt).map((began) => ({ round, began, revokedAt })),
    );
  }
  t.is(calls, ROUNDS * CALLS);
  t.log(`${accepted} of ${calls} calls were accepted`);
  t.true(accepted > 0 && accepted < calls);
  t.deepEqual(late, []);
});
