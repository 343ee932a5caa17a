// Sends requests over several connections, in a process of its own: the latency of others is measured meanwhile.

import { once } from "node:events";
import type { Sent } from "./expensive-requests.ts";

export type Flood = { origin: string; requests: Sent[]; connections: number; seconds: number };

const [{ origin, requests, connections, seconds }] = (await once(process, "message")) as [Flood];
process.send?.("ready");
const end = performance.now() + seconds * 1000;
let sent = 0;

async function send(): Promise<void> {
  while (performance.now() < end) {
    const { path, init } = requests[sent++ % requests.length] as Sent;
    const response = await fetch(origin + path, { redirect: "manual", ...init });
    for await (const _ of response.body ?? []); // kept nowhere
  }
}

await Promise.all(Array.from({ length: connections }, send));
process.send?.(sent);
process.disconnect();
