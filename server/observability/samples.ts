import { Counter, Gauge, type Registry } from "prom-client";

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
  const counter = new Counter({ name, help, labelNames: [label], registers: [registry] });
  for (const value of values) counter.inc({ [label]: value }, 0);
  return (value) => counter.inc({ [label]: value });
}

type GaugeOptions = { name: string; help: string; aggregator?: "max" };

/** The gauge is absent while `read` returns no finite number. */
export function registerGauge(
  registry: Registry,
  options: GaugeOptions,
  read: () => number | undefined,
): void {
  new Gauge({
    ...options,
    registers: [registry],
    collect() {
      const value = read();
      if (value !== undefined && Number.isFinite(value)) this.set(value);
      else this.remove();
    },
  });
}

/** Has a sample for each value of a label, and none while `read` returns nothing. */
export function registerGauges(
  registry: Registry,
  { label, ...options }: GaugeOptions & { label: string },
  read: () => Record<string, number> | undefined,
): void {
  new Gauge({
    ...options,
    labelNames: [label],
    registers: [registry],
    collect() {
      this.reset();
      for (const [key, value] of Object.entries(read() ?? {})) this.set({ [label]: key }, value);
    },
  });
}
