import test from "ava";
import { readTelemetrySettings } from "../../server/settings/telemetry-settings.ts";

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };

const WRONG: Record<string, [value: string, problem: RegExp]> = {
  OTEL_EXPORTER_OTLP_PROTOCOL: ["grpc", /must be http\/protobuf or http\/json/],
  OTEL_TRACES_SAMPLER: ["sometimes", /must be one of/],
  OTEL_BSP_SCHEDULE_DELAY: ["soon", /must be a positive whole number/],
  OTEL_METRICS_EXPORTER: ["otlp", /must be none/],
};

for (const [name, [value, problem]] of Object.entries(WRONG))
  test(`an invalid ${name} is named`, (t) => {
    const problems: string[] = [];
    readTelemetrySettings({ ...ENDPOINT, [name]: value }, problems);
    t.is(problems.length, 1);
    t.regex(String(problems[0]), new RegExp(`^${name} ${problem.source}`));
  });

test("traces are sent if an endpoint is set, unless they are disabled", (t) => {
  t.truthy(readTelemetrySettings(ENDPOINT, []));
  t.is(readTelemetrySettings({}, []), undefined);
  t.is(readTelemetrySettings({ ...ENDPOINT, OTEL_SDK_DISABLED: "TRUE" }, []), undefined);
});
