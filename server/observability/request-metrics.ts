import type { Metric, Registry } from "prom-client";

/** A request that was answered. */
export type CountedRequest = { method: string; route: string; status: number; seconds: number };

type Tally = {
  route: string;
  /** The number of responses, by method and status. */
  responses: Map<string, number>;
  /** The number of durations in each bucket, without those of smaller ones. */
  buckets: number[];
  seconds: number;
  count: number;
};
type Sample = { metricName?: string; value: number; labels: Record<string, string | number> };

// Upper bounds in seconds.
const BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];
const DURATION = "linkgate_http_request_duration_seconds";

/**
 * Registers the metrics of requests, and returns the function that counts one. prom-client's own classes hash the labels
 * of each observation; here, labels are made when the metrics are read.
 */
export function createRequestMetrics(registry: Registry): (request: CountedRequest) => void {
  const tallies = new Map<string, Tally>();
  const collect = (samplesOf: (tally: Tally) => Sample[]) => () => [...tallies.values()].flatMap(samplesOf);
  register(registry, "counter", "linkgate_http_requests_total", "HTTP requests", collect(responseSamples));
  register(registry, "histogram", DURATION, "Duration of HTTP requests in seconds", collect(durationSamples));

  return ({ method, route, status, seconds }) => {
    let tally = tallies.get(route);
    if (!tally) {
      tally = { route, responses: new Map(), buckets: BOUNDS.map(() => 0), seconds: 0, count: 0 };
      tallies.set(route, tally);
    }
    const key = `${method} ${status}`;
    tally.responses.set(key, (tally.responses.get(key) ?? 0) + 1);
    tally.seconds += seconds;
    tally.count++;
    const bucket = BOUNDS.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) tally.buckets[bucket] = (tally.buckets[bucket] as number) + 1;
  };
}

function responseSamples({ route, responses }: Tally): Sample[] {
  return [...responses].map(([key, value]) => {
    const [method = "", status = ""] = key.split(" ");
    return { value, labels: { method, route, status } };
  });
}

function durationSamples({ route, buckets, seconds, count }: Tally): Sample[] {
  let below = 0;
  const bounded = BOUNDS.map((le, index) => {
    below += buckets[index] as number;
    return { metricName: `${DURATION}_bucket`, value: below, labels: { le, route } };
  });
  return [
    ...bounded,
    { metricName: `${DURATION}_bucket`, value: count, labels: { le: "+Inf", route } },
    { metricName: `${DURATION}_sum`, value: seconds, labels: { route } },
    { metricName: `${DURATION}_count`, value: count, labels: { route } },
  ];
}

function register(
  registry: Registry,
  type: "counter" | "histogram",
  name: string,
  help: string,
  samples: () => Sample[],
): void {
  const get = async () => ({ name, help, type, aggregator: "sum", values: samples() });
  registry.registerMetric({ name, help, type, get, reset() {} } as unknown as Metric);
}
