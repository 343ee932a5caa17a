import type { Registry } from "prom-client";
import type { Storage } from "../../adapters/index.ts";
import { register, registerGauge } from "./samples.ts";

/** Registers the metrics of the replica, which are absent without one. Their values are read when the metrics are. */
export function registerReplicaMetrics(registry: Registry, replica: Storage["replica"]): void {
  registerGauge(
    registry,
    {
      name: "linkgate_replica_in_use",
      help: "1 if redirects read the replica, 0 if it is left out",
      aggregator: "min",
    },
    () => replica && Number(replica.state().isInUse),
  );
  registerGauge(
    registry,
    {
      name: "linkgate_replica_lag_seconds",
      help: "How old the links of the replica may be",
      aggregator: "max",
    },
    () => replica && replica.state().lagMs / 1000,
  );
  register(
    registry,
    {
      name: "linkgate_link_lookups_total",
      help: "Lookups of links for redirects, by the database that answered",
      type: "counter",
    },
    () =>
      Object.entries(replica?.reads() ?? {}).map(([database, value]) => ({ value, labels: { database } })),
  );
}
