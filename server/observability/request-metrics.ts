import type { Registry } from "prom-client";
import { Durations, register, type Sample } from "./samples.ts";

/** A request that was answered. */
export type CountedRequest = { method: string; route: string; status: number; seconds: number };

type Tally = {
  route: string;
  /** The number of responses, by method and status. */
  responses: Map<string, number>;
  durations: Durations;
};

// Upper bounds in seconds.
const BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];
const DURATION = "linkgate_http_request_duration_seconds";

/** Registers the metrics of requests, and returns the function that counts one. */
export function createRequestMetrics(registry: Registry): (request: CountedRequest) => void {
  const tallies = new Map<string, Tally>();
  const collect = (samplesOf: (tally: Tally) => Sample[]) => () => [...tallies.values()].flatMap(samplesOf);
  register(
    registry,
    { name: "linkgate_http_requests_total", help: "HTTP requests", type: "counter" },
    collect(responseSamples),
  );
  register(
    registry,
    { name: DURATION, help: "Duration of HTTP requests in seconds", type: "histogram" },
    collect(({ route, durations }) => durations.samples(DURATION, { route })),
  );

  return ({ method, route, status, seconds }) => {
    let tally = tallies.get(route);
    if (!tally) {
      tally = { route, responses: new Map(), durations: new Durations(BOUNDS) };
      tallies.set(route, tally);
    }
    const key = `${method} ${status}`;
    tally.responses.set(key, (tally.responses.get(key) ?? 0) + 1);
    tally.durations.observe(seconds);
  };
}

function responseSamples({ route, responses }: Tally): Sample[] {
  return [...responses].map(([key, value]) => {
    const [method = "", status = ""] = key.split(" ");
    return { value, labels: { method, route, status } };
  });
}
