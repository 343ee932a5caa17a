import test from "ava";
import { isAcceptedByApi, postAsClient } from "../../harness/clients/oauth.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
test.after.always(() => service.close());

test("a revocation ignores unknown parameters", async (t) => {
  const token = await service.token(app);
  const unknown = { foo: "x", bar: ["1", "2"] };
  t.is((await postAsClient(service, "revoke", app, { token, ...unknown })).status, 200);
  t.false(await isAcceptedByApi(service, token));
});
