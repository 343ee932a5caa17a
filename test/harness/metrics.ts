import { sendRaw } from "./clients/raw.ts";

/** The metrics of a service: a value for each name with its labels, such as `linkgate_processes` or `a_total{b="c"}`. */
export type MetricValues = Map<string, number>;

export async function readMetrics(url: string): Promise<MetricValues> {
  const { status, text } = await sendRaw(url, "/metrics");
  if (status !== 200) throw new Error(`/metrics: ${status} ${text}`);
  const lines = text.matchAll(/^([^#\s][^ ]*) (\S+)$/gm);
  return new Map([...lines].map(([, key = "", value]) => [key, Number(value)]));
}

export async function readMetricTypes(url: string): Promise<Map<string, string>> {
  const { text } = await sendRaw(url, "/metrics");
  const types = text.matchAll(/^# TYPE (\S+) (\S+)$/gm);
  return new Map([...types].map(([, name = "", type = ""]) => [name, type]));
}

/** Returns by how much each value grew, without those that didn't. */
export function growth(before: MetricValues, after: MetricValues, pattern: RegExp): Record<string, number> {
  return Object.fromEntries(
    [...after]
      .map(([key, value]): [string, number] => [key, value - (before.get(key) ?? 0)])
      .filter(([key, change]) => change !== 0 && pattern.test(key)),
  );
}
