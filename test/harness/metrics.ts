import { sendRaw } from "./clients/raw.ts";

/** The metrics of a service: a value for each name with its labels, such as `linkgate_processes` or `a_total{b="c"}`. */
export type MetricValues = Map<string, number>;

/** Reads the metrics of a service. */
export async function readMetrics(url: string): Promise<MetricValues> {
  const { status, text } = await sendRaw(url, "/metrics");
  if (status !== 200) throw new Error(`/metrics: ${status} ${text}`);
  const lines = text.matchAll(/^([^#\s][^ ]*) (\S+)$/gm);
  return new Map([...lines].map(([, key = "", value]) => [key, Number(value)]));
}

/** Returns the names and types of the metrics of a service, with and without samples. */
export async function readMetricTypes(url: string): Promise<Map<string, string>> {
  const { text } = await sendRaw(url, "/metrics");
  return new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type]),
  );
}

/** Returns by how much each value grew, without those that didn't. */
export function growth(before: MetricValues, after: MetricValues, pattern: RegExp): Record<string, number> {
  return Object.fromEntries(
    [...after]
      .map(([key, value]): [string, number] => [key, value - (before.get(key) ?? 0)])
      .filter(([key, change]) => change !== 0 && pattern.test(key)),
  );
}
