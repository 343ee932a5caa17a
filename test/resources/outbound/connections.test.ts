import test from "ava";
import { createConnections, NOT_PUBLIC } from "../../../resources/outbound/connections.ts";

const startRequest = createConnections(new Set());

for (const host of [
  "127.0.0.1",
  "169.254.169.254",
  "10.0.0.1",
  "[::1]",
  "[::ffff:10.0.0.1]",
  "[fd00::1]",
  "[4000::1]",
])
  test(`no connection is made to ${host}, for which there is no lookup`, (t) => {
    t.throws(() => startRequest(new URL(`https://${host}/`), {}), { message: NOT_PUBLIC });
  });
