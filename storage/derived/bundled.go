package derived

import (
	"embed"
	"strings"

	"github.com/loadstone-db/loadstone/engine/analytics/ingest"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

//go:embed bundled/*.sql
var bundled embed.FS

// Bundled are the derived tables that come with Loadstone, in an order in which each comes after those that it reads.
// The first line of a file, a comment, describes its table.
func Bundled() []refresh.Table {
	tables := []refresh.Table{{Name: ingest.Table, Kind: refresh.Ingest, Bundled: true, TargetLagSeconds: 20,
		Mode: refresh.Incremental, PartitionBy: refresh.ByRun, Priority: 10, CreatedBy: "loadstone",
		Description: "The seconds of every finished run, in the schema rollup."}}
	for _, t := range []struct {
		name      string
		partition string
	}{{"run_summary", refresh.ByRun}, {"run_seconds", refresh.ByRun}, {"kind_seconds", refresh.ByRun},
		{"statement_stats", refresh.ByRun}, {"error_stats", refresh.ByRun}, {"node_seconds", refresh.ByRun},
		{"warehouse_timeseries", refresh.ByRun}, {"slow_executions", refresh.ByRun}, {"cost_per_million", ""},
		{"baseline_drift", ""}} {
		text, err := bundled.ReadFile("bundled/" + t.name + ".sql")
		if err != nil {
			panic("derived: an embedded file cannot be read: " + err.Error())
		}
		about, definition, _ := strings.Cut(string(text), "\n")
		tables = append(tables, refresh.Table{Name: t.name, Kind: refresh.SQL, Bundled: true, TargetLagSeconds: 60,
			Mode: refresh.Auto, PartitionBy: t.partition, Priority: 5, Sources: []string{ingest.Table},
			CreatedBy: "loadstone", Description: strings.TrimPrefix(about, "-- "),
			Definition: strings.TrimSpace(definition)})
	}
	return tables
}
