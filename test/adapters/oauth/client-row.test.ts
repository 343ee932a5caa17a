import test from "ava";
import { type JoinedClientRow, toClient } from "../../../adapters/oauth/client-row.ts";

const ROW: JoinedClientRow = {
  id: "lgc_1",
  organizationId: "org_1",
  name: "Works",
  plan: "growth",
  suspendedAt: null,
  requiresDpop: false,
  disabledAt: null,
  redirectUris: "[]",
  generation: 1,
  secretId: "sec_01",
  hash: "older",
  expiresAt: 1,
};

test("the secrets of a client are newest first, in whichever order the database returns them", (t) => {
  const rows = [ROW, { ...ROW, secretId: "sec_02", hash: "newer", expiresAt: null }];
  const [one, other] = [toClient(rows), toClient(rows.toReversed())];
  t.deepEqual(
    one?.secrets.map(({ hash }) => hash),
    ["newer", "older"],
  );
  t.deepEqual(other, one);
});
