// Sends requests over several connections, in a thread of its own: the latency of others is measured meanwhile.

import { parentPort, workerData } from "node:worker_threads";

export type Flood = {
  origin: string;
  requests: { path: string; init?: RequestInit }[];
  connections: number;
  seconds: number;
};

const { origin, requests, connections, seconds } = workerData as Flood;
const end = performance.now() + seconds * 1000;
let sent = 0;

async function send(): Promise<void> {
  while (performance.now() < end) {
    const { path, init } = requests[sent++ % requests.length] as Flood["requests"][number];
    const response = await fetch(origin + path, { redirect: "manual", ...init });
    for await (const _ of response.body ?? []); // kept nowhere
  }
}

await Promise.all(Array.from({ length: connections }, send));
parentPort?.postMessage(sent);
