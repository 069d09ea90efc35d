package system

import (
	"cmp"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Sources are the statements that make the streams of the product sources that queries can name.
const Sources = `
CREATE LOGICAL SOURCE worker_statistics(timestamp TIMESTAMP, runId TEXT, workerId TEXT, nodeId TEXT, phase TEXT,
	recordsProcessed INT64, errors INT64, connections INT64, p50Ms FLOAT64, p95Ms FLOAT64, p99Ms FLOAT64);
CREATE PHYSICAL SOURCE FOR worker_statistics TYPE SYSTEM SET('worker_statistics' AS SOURCE.STREAM);
CREATE LOGICAL SOURCE worker_resources(timestamp TIMESTAMP, runId TEXT, workerId TEXT, nodeId TEXT, cpuUsage FLOAT64,
	memoryUsage FLOAT64, memoryBytes INT64, hostCpuUsage FLOAT64, gcPauseMaxMs FLOAT64, goroutines INT64);
CREATE PHYSICAL SOURCE FOR worker_resources TYPE SYSTEM SET('worker_resources' AS SOURCE.STREAM);
CREATE LOGICAL SOURCE heartbeats(timestamp TIMESTAMP, runId TEXT, workerId TEXT, nodeId TEXT, status TEXT, phase TEXT);
CREATE PHYSICAL SOURCE FOR heartbeats TYPE SYSTEM SET('heartbeats' AS SOURCE.STREAM);
CREATE LOGICAL SOURCE warehouse(timestamp TIMESTAMP, runId TEXT, name TEXT, state TEXT, size TEXT, clusters INT64,
	running INT64, queued INT64);
CREATE PHYSICAL SOURCE FOR warehouse TYPE SYSTEM SET('warehouse' AS SOURCE.STREAM);
CREATE LOGICAL SOURCE run_events(timestamp TIMESTAMP, runId TEXT, event TEXT, status TEXT, phase TEXT, reason TEXT);
CREATE PHYSICAL SOURCE FOR run_events TYPE SYSTEM SET('run_events' AS SOURCE.STREAM);
CREATE LOGICAL SOURCE kind_statistics(timestamp TIMESTAMP, runId TEXT, workerId TEXT, nodeId TEXT, phase TEXT, kind TEXT,
	recordsProcessed INT64, errors INT64, p50Ms FLOAT64, p95Ms FLOAT64, p99Ms FLOAT64);
CREATE PHYSICAL SOURCE FOR kind_statistics TYPE SYSTEM SET('kind_statistics' AS SOURCE.STREAM);
CREATE LOGICAL SOURCE statement_statistics(timestamp TIMESTAMP, runId TEXT, workerId TEXT, nodeId TEXT, phase TEXT,
	statement TEXT, kind TEXT, inTransaction BOOLEAN, recordsProcessed INT64, errors INT64, p50Ms FLOAT64, p95Ms FLOAT64,
	p99Ms FLOAT64);
CREATE PHYSICAL SOURCE FOR statement_statistics TYPE SYSTEM SET('statement_statistics' AS SOURCE.STREAM);
CREATE LOGICAL SOURCE executions(timestamp TIMESTAMP, runId TEXT, workerId TEXT, nodeId TEXT, connection INT64, seq INT64,
	step INT64, phase TEXT, warmup BOOLEAN, kind TEXT, statement TEXT, dueAt TIMESTAMP, startedAt TIMESTAMP,
	latencyMs FLOAT64, scheduleLagMs FLOAT64, poolWaitMs FLOAT64, decodeMs FLOAT64, rows INT64, success BOOLEAN,
	errorClass TEXT, errorCode TEXT, errorMessage TEXT, retries INT64, rolledBack BOOLEAN, queryId TEXT);
CREATE PHYSICAL SOURCE FOR executions TYPE SYSTEM SET('executions' AS SOURCE.STREAM);
`

// row appends a row. Its values are time.Time, string, bool, int64 and float64, or nil, as the columns are.
func row(b *column.Batch, values ...any) {
	for i, v := range values {
		c := &b.Cols[i]
		switch v := v.(type) {
		case time.Time:
			c.AppendInt(v.UnixMicro())
		case string:
			c.AppendText([]byte(v))
		case bool:
			c.AppendBool(v)
		case int64:
			c.AppendInt(v)
		case float64:
			c.AppendFloat(v)
		default:
			c.AppendNull()
		}
	}
	b.N++
}

// Tick tells a second of a run: what its run workers did, and that they are there.
func (h *Hub) Tick(t *store.Tick) {
	if h == nil {
		return
	}
	h.checkRemote(t)
	h.publishKinds(t)
	h.Publish(connector.WorkerStatistics, func(b *column.Batch) {
		for i := range t.Snapshots {
			s := &t.Snapshots[i]
			q := quantiles(histogram.Unpack(s.TickLatency))
			row(b, s.Timestamp.Time, t.RunID, s.WorkerID, s.NodeID, string(s.Phase), s.TickStarted, s.TickErrors,
				int64(s.ActiveConnections), q[0], q[1], q[2])
		}
	})
	h.Publish(connector.WorkerResources, func(b *column.Batch) {
		for i := range t.Snapshots {
			s := &t.Snapshots[i]
			r := &s.Resources
			row(b, s.Timestamp.Time, t.RunID, s.WorkerID, s.NodeID, r.CPUPercent, r.MemoryPercent, r.MemoryBytes,
				r.HostCPUPercent, r.GCPauseMaxMs, int64(r.Goroutines))
		}
	})
	h.Publish(connector.Heartbeats, func(b *column.Batch) {
		for i := range t.Workers {
			w := &t.Workers[i]
			row(b, w.LastHeartbeat, t.RunID, w.WorkerID, w.NodeID, string(w.Status), string(w.Phase))
		}
	})
}

// missingTimeout is how long a query may lack the executions of a node that has come, until it has been given them.
const missingTimeout = 20 * time.Second

// heartbeatTimeout is after how long without a heartbeat a run worker is taken for lost.
const heartbeatTimeout = 5 * time.Second

// checkRemote ends queries that would say something untrue: what run workers record on other nodes does not come here,
// and a query may not have it from there.
func (h *Hub) checkRemote(t *store.Tick) {
	lacking := false
	for _, stream := range []string{connector.Executions, connector.StatementStatistics} {
		if h.HasReaders(stream) {
			lacking = h.checkMissing(stream, t) || lacking
		}
	}
	if f := h.onMissingNode.Load(); lacking && f != nil {
		(*f)()
	}
}

// checkMissing looks whether queries have all of a stream, and ends those that do not for long.
func (h *Hub) checkMissing(stream string, t *store.Tick) (lacking bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.readers[stream] {
		i := slices.IndexFunc(t.Workers, func(w store.WorkerRow) bool {
			// What is not heard of is lost to everybody, as long as it is.
			there := !w.Status.Ended() && time.Since(w.LastHeartbeat) < heartbeatTimeout
			return w.NodeID != "" && w.NodeID != h.Node && there && (r.remote == nil || !r.remote(w.NodeID))
		})
		if i < 0 {
			if r.missing == t.RunID {
				r.missingSince, r.missing = time.Time{}, ""
			}
			continue
		}
		w := &t.Workers[i]
		if r.missing == "" {
			r.missingSince, r.missing = time.Now(), t.RunID
		}
		if r.remote != nil && time.Since(r.missingSince) < missingTimeout {
			lacking = true
			continue
		}
		r.fail(sql.Errorf(sql.PlacementError, "", -1,
			"kind_statistics and worker_statistics tell of all nodes; or have runs stay on nodes that run the query: "+
				"SHOW QUERIES",
			"run %s has the run worker %s on the node %s, whose %s the query does not have: it would say less than the truth",
			t.RunID, w.WorkerID, w.NodeID, stream))
	}
	return lacking
}

// Poll tells what a run's warehouse is like.
func (h *Hub) Poll(runID string, p engine.WarehousePoint) {
	h.Publish(connector.Warehouse, func(b *column.Batch) {
		row(b, p.Timestamp.Time, runID, p.Name, p.State, p.Size, int64(p.Clusters()), int64(p.Running), int64(p.Queued))
	})
}

// Transition tells what happens to a run.
func (h *Hub) Transition(t store.Transition, events []engine.Event, now time.Time) {
	if h != nil && t.To.Terminal() {
		h.kinds.forget(t.RunID)
	}
	h.Publish(connector.RunEvents, func(b *column.Batch) {
		var phase any
		if t.Phase != nil {
			phase = string(*t.Phase)
		}
		var status any
		if t.To != "" {
			status = string(t.To)
		}
		reason := cmp.Or(t.CancellationReason, string(t.StopReason))
		for _, e := range events {
			row(b, now, t.RunID, string(e.Type), status, phase, reason)
		}
		if len(events) == 0 {
			row(b, now, t.RunID, "", status, phase, reason)
		}
	})
}
