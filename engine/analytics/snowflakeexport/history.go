package snowflakeexport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
)

// historyRow is what the account's history says of an execution, as it is in a file.
type historyRow struct {
	ServerMs             *float64 `parquet:"SERVER_MS,optional"`
	CompilationMs        *float64 `parquet:"COMPILATION_MS,optional,dict"`
	ExecutionMs          *float64 `parquet:"EXECUTION_MS,optional,dict"`
	QueuedMs             *float64 `parquet:"QUEUED_MS,optional,dict"`
	QueuedOverloadMs     *float64 `parquet:"QUEUED_OVERLOAD_MS,optional,dict"`
	QueuedProvisioningMs *float64 `parquet:"QUEUED_PROVISIONING_MS,optional,dict"`
	QueuedRepairMs       *float64 `parquet:"QUEUED_REPAIR_MS,optional,dict"`
	BlockedMs            *float64 `parquet:"BLOCKED_MS,optional,dict"`
	OverheadMs           *float64 `parquet:"OVERHEAD_MS,optional"`
	ClusterNumber        *int32   `parquet:"CLUSTER_NUMBER,optional,dict"`
	ExecutionStatus      *string  `parquet:"EXECUTION_STATUS,optional,dict"`
}

// known is the server's view of one execution. Whole milliseconds are exact in a float32 up to 4.6 hours.
type known struct {
	id                                                                            engine.QueryID
	server, compilation, execution, queuedOverload, provisioning, repair, blocked float32
	cluster, status                                                               int32
	overhead                                                                      float64
}

// history is what the account's history says of the executions of some parts of a run.
type history struct {
	digest   string // of the enrichment, "" without one
	rows     []known
	statuses []string
}

func historyOf(artifacts []engine.Artifact) history {
	var sums []string
	for _, a := range artifacts {
		if a.Kind == record.KindEnrichment {
			sums = append(sums, a.SHA256)
		}
	}
	if len(sums) == 0 {
		return history{}
	}
	slices.Sort(sums)
	sum := sha256.New()
	for _, s := range sums {
		sum.Write([]byte(s))
	}
	return history{digest: hex.EncodeToString(sum.Sum(nil)[:8])}
}

// version is what LOADSTONE_PARTS has for a part with this history: when it becomes another, the part is sent again.
func (h *history) version(a engine.Artifact) string {
	if h.digest == "" {
		return a.SHA256
	}
	return a.SHA256 + "+" + h.digest
}

// historyRows is about for how many executions the history is held at a time: 80 bytes each.
const historyRows = 2_000_000

// groups divides parts so that the executions of a group are not more than historyRows, unless one part has more.
func groups(parts []engine.Artifact) (list [][]engine.Artifact) {
	var rows int64
	for _, a := range parts {
		if len(list) == 0 || rows+a.RowCount > historyRows {
			list, rows = append(list, nil), 0
		}
		list[len(list)-1] = append(list[len(list)-1], a)
		rows += a.RowCount
	}
	return list
}

// read reads what the history says of the executions of some parts, in place of what it held. A part that cannot be
// read has none: who reads it next finds out why.
func (h *history) read(ctx context.Context, r Record, runID string, parts []engine.Artifact) error {
	h.rows, h.statuses = h.rows[:0], nil
	if h.digest == "" {
		return nil
	}
	ids, err := idsOf(ctx, r, runID, parts)
	if err != nil {
		return err
	}
	seen := map[string]int32{}
	if _, err := r.Enriched(ctx, runID, func(e *engine.EnrichedExecution) error {
		if _, wanted := slices.BinarySearchFunc(ids, e.QueryID, compareIDs); !wanted {
			return nil
		}
		status, there := seen[e.Status]
		if !there {
			status = int32(len(h.statuses))
			seen[e.Status] = status
			h.statuses = append(h.statuses, e.Status)
		}
		h.rows = append(h.rows, known{id: e.QueryID, server: float32(e.ServerMs), compilation: float32(e.CompilationMs),
			execution: float32(e.ExecutionMs), queuedOverload: float32(e.QueuedOverloadMs),
			provisioning: float32(e.QueuedProvisioningMs), repair: float32(e.QueuedRepairMs), blocked: float32(e.BlockedMs),
			cluster: e.Cluster, status: status, overhead: e.OverheadMs})
		return nil
	}); err != nil {
		return fmt.Errorf("reading what the history says of run %s: %w", runID, err)
	}
	slices.SortFunc(h.rows, func(a, b known) int { return compareIDs(a.id, b.id) })
	return nil
}

func compareIDs(a, b engine.QueryID) int { return bytes.Compare(a[:], b[:]) }

// idsOf are the query ids of the executions of some parts, sorted.
func idsOf(ctx context.Context, r Record, runID string, parts []engine.Artifact) (ids []engine.QueryID, _ error) {
	for _, a := range parts {
		err := r.ReadExecutions(ctx, runID, a.Name, func(x *rollup.Executions) error {
			for i := range x.DueNs {
				if x.QueryID.Index[i] < 0 {
					continue
				}
				if id, err := engine.ParseQueryID(x.QueryID.At(i)); err == nil {
					ids = append(ids, id)
				}
			}
			return nil
		})
		if ctx.Err() != nil || store.IsTransient(err) {
			return nil, fmt.Errorf("reading part %s of run %s: %w", a.Name, runID, err)
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids, nil
}

// of returns the server's view of an execution by its query id; without an id it is empty.
func (h *history) of(queryID *string) (r historyRow) {
	if queryID == nil || len(h.rows) == 0 {
		return r
	}
	id, err := engine.ParseQueryID(*queryID)
	if err != nil {
		return r
	}
	i, there := slices.BinarySearchFunc(h.rows, id, func(k known, id engine.QueryID) int { return compareIDs(k.id, id) })
	if !there {
		return r
	}
	k := &h.rows[i]
	ms := func(v float32) *float64 { return new(float64(v)) }
	return historyRow{ServerMs: ms(k.server), CompilationMs: ms(k.compilation), ExecutionMs: ms(k.execution),
		QueuedMs: ms(k.queuedOverload + k.provisioning + k.repair), QueuedOverloadMs: ms(k.queuedOverload),
		QueuedProvisioningMs: ms(k.provisioning), QueuedRepairMs: ms(k.repair), BlockedMs: ms(k.blocked),
		OverheadMs: &k.overhead, ClusterNumber: &k.cluster, ExecutionStatus: &h.statuses[k.status]}
}
