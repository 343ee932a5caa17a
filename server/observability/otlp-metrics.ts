import { type HrTime, ValueType } from "@opentelemetry/api";
import { millisToHrTime } from "@opentelemetry/core";
import type { Resource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from "@opentelemetry/sdk-metrics";
import { VERSION } from "../version.ts";
import type { Metrics } from "./worker-metrics.ts";

type Metric = Metrics[number];
type Value = { value: number; labels: Record<string, string | number>; metricName?: string };
type Times = { startTime: HrTime; endTime: HrTime };

/** Creates a producer of the metrics that `/metrics` has too, under the same names. */
export function createMetricProducer(
  resource: Resource,
  readMetrics: () => Promise<Metrics>,
): MetricProducer {
  const startTime = millisToHrTime(Date.now());
  return {
    async collect() {
      const times = { startTime, endTime: millisToHrTime(Date.now()) };
      const metrics = (await readMetrics()).map((metric) => toMetricData(metric, times));
      const scope = { name: "linkgate", version: VERSION };
      return { resourceMetrics: { resource, scopeMetrics: [{ scope, metrics }] }, errors: [] };
    },
  };
}

function toMetricData(metric: Metric, times: Times): MetricData {
  const { name, help, type } = metric;
  const values = (metric.values as Value[]).filter(({ value }) => Number.isFinite(value));
  const common = {
    descriptor: { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const points = () => values.map(({ value, labels }) => ({ ...times, attributes: labels, value }));
  if (type === "counter")
    return { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: points() };
  if (type === "histogram")
    return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints: histograms(values, times) };
  return { ...common, dataPointType: DataPointType.GAUGE, dataPoints: points() };
}

function unitOf(name: string): string {
  if (/_seconds(_total)?$/.test(name)) return "s";
  return name.endsWith("_bytes") ? "By" : "";
}

/** Converts the series of a Prometheus histogram, whose buckets contain those with smaller bounds. */
function histograms(values: Value[], times: Times): DataPoint<Histogram>[] {
  const groups = Map.groupBy(values, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels));
  return [...groups].map(([key, series]) => {
    const buckets = series.filter(({ metricName }) => metricName?.endsWith("_bucket"));
    const find = (end: string) => series.find(({ metricName }) => metricName?.endsWith(end))?.value ?? 0;
    const counts = buckets.map(({ value }, index) => value - (buckets[index - 1]?.value ?? 0));
    const boundaries = buckets.map(({ labels }) => Number(labels.le)).filter(Number.isFinite);
    const value = { buckets: { boundaries, counts }, sum: find("_sum"), count: find("_count") };
    return { ...times, attributes: JSON.parse(key), value };
  });
}
