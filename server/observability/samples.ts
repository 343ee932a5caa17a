import type { Metric, Registry } from "prom-client";

export type Sample = { metricName?: string; value: number; labels: Record<string, string | number> };

export type MetricOptions = {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram";
  /** `sum` by default. */
  aggregator?: "sum" | "min" | "max";
};

/** prom-client's own classes hash the labels of each observation, which takes longer than the counting. */
export function register(
  registry: Registry,
  { name, help, type, aggregator = "sum" }: MetricOptions,
  samples: () => Sample[],
): void {
  const get = async () => ({ name, help, type, aggregator, values: samples() });
  registry.registerMetric({ name, help, type, get, reset() {} } as unknown as Metric);
}

/** Returns the function that counts. Known values of the label start at 0. */
export function registerCounter(
  registry: Registry,
  {
    name,
    help,
    label,
    values = [],
  }: { name: string; help: string; label: string; values?: Iterable<string> },
): (value: string) => void {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, 0);
  register(registry, { name, help, type: "counter" }, () =>
    [...counts].map(([key, value]) => ({ value, labels: { [label]: key } })),
  );
  return (value) => void counts.set(value, (counts.get(value) ?? 0) + 1);
}

/** The gauge is absent while `read` returns no finite number. */
export function registerGauge(
  registry: Registry,
  options: Omit<MetricOptions, "type">,
  read: () => number | undefined,
): void {
  register(registry, { ...options, type: "gauge" }, () => {
    const value = read();
    return Number.isFinite(value) ? [{ value: value as number, labels: {} }] : [];
  });
}

export class Durations {
  readonly #bounds: readonly number[];
  // The number of durations up to each bound, without those up to smaller ones.
  readonly #buckets: number[];
  #sum = 0;
  #count = 0;

  /** Upper bounds, in seconds. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#buckets = bounds.map(() => 0);
  }

  observe(seconds: number): void {
    this.#sum += seconds;
    this.#count++;
    const bounds = this.#bounds;
    for (let index = 0; index < bounds.length; index++) {
      if (seconds > (bounds[index] as number)) continue;
      this.#buckets[index] = (this.#buckets[index] as number) + 1;
      return;
    }
  }

  samples(name: string, labels: Record<string, string>): Sample[] {
    let below = 0;
    const bounded = this.#bounds.map((le, index) => {
      below += this.#buckets[index] as number;
      return { metricName: `${name}_bucket`, value: below, labels: { le, ...labels } };
    });
    return [
      ...bounded,
      { metricName: `${name}_bucket`, value: this.#count, labels: { le: "+Inf", ...labels } },
      { metricName: `${name}_sum`, value: this.#sum, labels },
      { metricName: `${name}_count`, value: this.#count, labels },
    ];
  }
}
