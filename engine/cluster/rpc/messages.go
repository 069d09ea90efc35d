package rpc

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

func workerState(m protocol.WorkerState) *pb.WorkerState {
	return &pb.WorkerState{
		RunId:           m.RunID,
		ResultId:        m.ResultID,
		WorkerId:        m.WorkerID,
		WorkerGroupId:   int64(m.WorkerGroupID),
		NodeId:          m.NodeID,
		Status:          string(m.Status),
		Phase:           string(m.Phase),
		LastSequence:    m.LastSequence,
		OpenConnections: int64(m.OpenConnections),
		WantConnections: int64(m.WantConnections),
		Error:           failure(m.Err),
		Totals: totals(
			m.Totals,
		),
		Parts:         int64(m.Parts),
		LogsDropped:   m.LogsDropped,
		IoEngine:      m.IOEngine,
		IoReason:      m.IOReason,
		At:            instant(m.At),
		ClockErrorNs:  int64(m.ClockError),
		RecordEnded:   m.RecordEnded,
		BeganAt:       instant(m.BeganAt),
		BeganLateNs:   int64(m.BeganLate),
		MeasuresSince: instant(m.MeasuresSince),
		LineAheadNs:   int64(m.LineAhead),
		LineErrorNs:   int64(m.LineError),
		Epoch:         m.Epoch,
	}
}

func readWorkerState(p *pb.WorkerState) protocol.WorkerState {
	return protocol.WorkerState{
		RunID:           p.GetRunId(),
		ResultID:        p.GetResultId(),
		WorkerID:        p.GetWorkerId(),
		WorkerGroupID:   int(p.GetWorkerGroupId()),
		NodeID:          p.GetNodeId(),
		Status:          engine.WorkerStatus(p.GetStatus()),
		Phase:           engine.Phase(p.GetPhase()),
		LastSequence:    p.GetLastSequence(),
		OpenConnections: int(p.GetOpenConnections()),
		WantConnections: int(p.GetWantConnections()),
		Err:             readFailure(p.GetError()),
		Totals:          readTotals(p.GetTotals()),
		Parts: int(
			p.GetParts(),
		),
		LogsDropped:   p.GetLogsDropped(),
		IOEngine:      p.GetIoEngine(),
		IOReason:      p.GetIoReason(),
		At:            moment(p.GetAt()),
		ClockError:    time.Duration(p.GetClockErrorNs()),
		RecordEnded:   p.GetRecordEnded(),
		BeganAt:       moment(p.GetBeganAt()),
		BeganLate:     time.Duration(p.GetBeganLateNs()),
		MeasuresSince: moment(p.GetMeasuresSince()),
		LineAhead:     time.Duration(p.GetLineAheadNs()),
		LineError:     time.Duration(p.GetLineErrorNs()),
		Epoch:         p.GetEpoch(),
	}
}

func workReady(m protocol.WorkReady) *pb.WorkReady {
	a := m.Artifact
	return &pb.WorkReady{WorkId: m.WorkID, NodeId: m.NodeID, ArtifactUrl: m.ArtifactURL, Salvaged: m.Salvaged,
		Pressing: m.Pressing, Totals: totals(m.Totals),
		Artifact: &pb.Artifact{ArtifactId: a.ArtifactID, RunId: a.RunID, ResultId: a.ResultID,
			WorkerId: a.WorkerID, Kind: a.Kind, Name: a.Name, ArtifactSizeBytes: a.SizeBytes, ArtifactChecksum: a.SHA256,
			RowCount: a.RowCount, MinTs: instant(a.MinTime.Time), MaxTs: instant(a.MaxTime.Time),
			ParquetSchemaVersion: int64(a.SchemaVersion), CreatedAt: instant(a.CreatedAt.Time)}}
}

func readWorkReady(p *pb.WorkReady) protocol.WorkReady {
	a := p.GetArtifact()
	return protocol.WorkReady{WorkID: p.GetWorkId(), NodeID: p.GetNodeId(), ArtifactURL: p.GetArtifactUrl(),
		Salvaged: p.GetSalvaged(), Pressing: p.GetPressing(), Totals: readTotals(p.GetTotals()),
		Artifact: engine.Artifact{ArtifactID: a.GetArtifactId(),
			RunID: a.GetRunId(), ResultID: a.GetResultId(), WorkerID: a.GetWorkerId(), Kind: a.GetKind(), Name: a.GetName(),
			SizeBytes: a.GetArtifactSizeBytes(), SHA256: a.GetArtifactChecksum(), RowCount: a.GetRowCount(),
			MinTime: engine.At(moment(a.GetMinTs())), MaxTime: engine.At(moment(a.GetMaxTs())),
			SchemaVersion: int(a.GetParquetSchemaVersion()), CreatedAt: engine.At(moment(a.GetCreatedAt()))}}
}

// failure is an error as it travels: what a user may read, without its cause.
func failure(e *engine.Error) *pb.Error {
	if e == nil {
		return nil
	}
	return &pb.Error{Code: string(e.Code), Message: e.Message, Hint: e.Hint,
		Fields: listed(e.Fields, func(f engine.FieldError) *pb.FieldError {
			return &pb.FieldError{Field: f.Field, Message: f.Message, Hint: f.Hint, Line: int64(f.Line)}
		})}
}

func readFailure(p *pb.Error) *engine.Error {
	if p == nil {
		return nil
	}
	return &engine.Error{Code: engine.Code(p.GetCode()), Message: p.GetMessage(), Hint: p.GetHint(),
		Fields: listed(p.GetFields(), func(f *pb.FieldError) engine.FieldError {
			return engine.FieldError{Field: f.GetField(), Message: f.GetMessage(), Hint: f.GetHint(), Line: int(f.GetLine())}
		})}
}

func totals(t *engine.Totals) *pb.Totals {
	if t == nil {
		return nil
	}
	return &pb.Totals{Scheduled: t.Scheduled, Dropped: t.Dropped, DroppedByReason: drops(t.DroppedByReason),
		Started: t.Started, Succeeded: t.Succeeded, Failed: t.Failed, Recorded: t.Recorded, Warmup: t.Warmup,
		WarmupScheduled: t.WarmupScheduled, WarmupDropped: t.WarmupDropped, Statements: t.Statements, Balanced: t.Balanced,
		Problems: t.Problems, Connections: connections(t.Connections), KeysReplaced: t.KeysReplaced}
}

func readTotals(p *pb.Totals) *engine.Totals {
	if p == nil {
		return nil
	}
	return &engine.Totals{Accounting: engine.Accounting{Scheduled: p.GetScheduled(), Dropped: p.GetDropped(),
		DroppedByReason: readDrops(p.GetDroppedByReason()), Started: p.GetStarted(), Succeeded: p.GetSucceeded(),
		Failed: p.GetFailed(), Recorded: p.GetRecorded(), Warmup: p.GetWarmup(), WarmupScheduled: p.GetWarmupScheduled(),
		WarmupDropped: p.GetWarmupDropped(), Statements: p.GetStatements(), Balanced: p.GetBalanced(),
		Problems: p.GetProblems()}, Connections: readConnections(p.GetConnections()), KeysReplaced: p.GetKeysReplaced()}
}

func drops(d engine.Drops) *pb.Drops {
	return &pb.Drops{MaxInFlight: d.MaxInFlight, Stopped: d.Stopped, NotDispatched: d.NotDispatched}
}

func readDrops(p *pb.Drops) engine.Drops {
	return engine.Drops{MaxInFlight: p.GetMaxInFlight(), Stopped: p.GetStopped(), NotDispatched: p.GetNotDispatched()}
}

func connections(c engine.ConnectionFigures) *pb.ConnectionFigures {
	return &pb.ConnectionFigures{Lost: c.Lost, Refused: c.Refused, Reopened: c.Reopened, MostMissing: int64(c.MaxMissing)}
}

func readConnections(p *pb.ConnectionFigures) engine.ConnectionFigures {
	return engine.ConnectionFigures{Lost: p.GetLost(), Refused: p.GetRefused(), Reopened: p.GetReopened(),
		MaxMissing: int(p.GetMostMissing())}
}

func resources(r engine.Resources) *pb.Resources {
	return &pb.Resources{CpuPct: r.CPUPercent, MemoryPct: r.MemoryPercent, MemoryBytes: r.MemoryBytes,
		HostCpuPct: r.HostCPUPercent, HostMemoryPct: r.HostMemoryPercent, GcPauseMaxMs: r.GCPauseMaxMs,
		Goroutines: int64(r.Goroutines), StoodStillMs: r.MaxStallMs, Witness: witness(r.Witness)}
}

func witness(w *engine.Witness) *pb.Witness {
	if w == nil {
		return nil
	}
	return &pb.Witness{Known: w.Known, RunNs: w.RunNs, WaitNs: w.WaitNs, Slices: w.Slices, Late: w.Late[:],
		StoppedNs: w.StoppedNs, Retransmits: w.Retransmits}
}

func readWitness(p *pb.Witness) *engine.Witness {
	if p == nil {
		return nil
	}
	w := &engine.Witness{Known: p.GetKnown(), RunNs: p.GetRunNs(), WaitNs: p.GetWaitNs(), Slices: p.GetSlices(),
		StoppedNs: p.GetStoppedNs(), Retransmits: p.GetRetransmits()}
	copy(w.Late[:], p.GetLate())
	return w
}

func readResources(p *pb.Resources) engine.Resources {
	return engine.Resources{CPUPercent: p.GetCpuPct(), MemoryPercent: p.GetMemoryPct(), MemoryBytes: p.GetMemoryBytes(),
		HostCPUPercent: p.GetHostCpuPct(), HostMemoryPercent: p.GetHostMemoryPct(), GCPauseMaxMs: p.GetGcPauseMaxMs(),
		Goroutines: int(p.GetGoroutines()), MaxStallMs: p.GetStoodStillMs(),
		Witness: readWitness(p.GetWitness())}
}

func packed(p *engine.PackedHistogram) *pb.Histogram {
	h := histogram.Unpack(p)
	if h == nil {
		return nil
	}
	return &pb.Histogram{Schema: int64(h.Schema), Offset: int64(h.Offset), Counts: h.Counts, SumNs: h.Sum, MinNs: h.Min,
		MaxNs: h.Max}
}

func readPacked(p *pb.Histogram) *engine.PackedHistogram {
	if p == nil {
		return nil
	}
	return histogram.Pack(&engine.HistogramData{Schema: int(p.GetSchema()), Offset: int(p.GetOffset()),
		Counts: p.GetCounts(), Sum: p.GetSumNs(), Min: p.GetMinNs(), Max: p.GetMaxNs()})
}

// byKind writes a map by kind, readByKind reads it; kinds of a later version are left out.
func byKind[A, B any](in map[engine.Kind]A, f func(A) B) map[string]B {
	if in == nil {
		return nil
	}
	out := make(map[string]B, len(in))
	for k, a := range in {
		out[k.String()] = f(a)
	}
	return out
}

func readByKind[A, B any](in map[string]A, f func(A) B) map[engine.Kind]B {
	if in == nil {
		return nil
	}
	out := make(map[engine.Kind]B, len(in))
	for k, a := range in {
		if kind, err := engine.ParseKind(k); err == nil {
			out[kind] = f(a)
		}
	}
	return out
}

func byClass(in map[engine.ErrorClass]int64) map[string]int64 {
	if in == nil {
		return nil
	}
	out := make(map[string]int64, len(in))
	for c, n := range in {
		out[string(c)] = n
	}
	return out
}

func readByClass(in map[string]int64) map[engine.ErrorClass]int64 {
	if in == nil {
		return nil
	}
	out := make(map[engine.ErrorClass]int64, len(in))
	for c, n := range in {
		out[engine.ErrorClass(c)] = n
	}
	return out
}

func kindCounts(c engine.KindCounts) *pb.KindCounts {
	return &pb.KindCounts{Count: c.Count, Errors: c.Errors}
}

func readKindCounts(p *pb.KindCounts) engine.KindCounts {
	return engine.KindCounts{Count: p.GetCount(), Errors: p.GetErrors()}
}

func snapshot(s engine.WorkerSnapshot) *pb.Snapshot {
	split := s.TickSplit
	return &pb.Snapshot{RunId: s.RunID, ResultId: s.ResultID, WorkerId: s.WorkerID, WorkerGroupId: int64(s.WorkerGroupID),
		NodeId: s.NodeID, Tick: s.Tick, Step: int64(s.Step), StepOver: s.StepOver, StepMissing: int64(s.StepMissing),
		Timestamp: instant(s.Timestamp.Time), Phase: string(s.Phase), Status: string(s.Status), PhaseSeconds: s.PhaseSeconds,
		TickSeconds: s.TickSeconds, Started: s.Started, Succeeded: s.Succeeded, Failed: s.Failed, Scheduled: s.Scheduled,
		Dropped: s.Dropped, ByKind: byKind(s.ByKind, kindCounts), ErrorsByClass: byClass(s.ByClass), Retries: s.Retries,
		TickScheduled: s.TickScheduled, TickStarted: s.TickStarted, TickDropped: s.TickDropped, TickErrors: s.TickErrors,
		TickByKind: byKind(s.TickByKind, kindCounts), TickLatency: packed(s.TickLatency),
		PhaseLatency: packed(s.PhaseLatency), KindLatency: byKind(s.KindLatency, packed),
		TickService: packed(s.TickService), PhaseService: packed(s.PhaseService), TickLag: packed(s.TickLag),
		TargetQps: s.TargetQPS, InFlight: int64(s.InFlight), Waiting: int64(s.Waiting),
		TickSplit: &pb.LatencySplit{Count: split.Count, ScheduleLagNs: split.Lag, PoolWaitNs: split.Wait,
			RoundTripNs: split.RoundTrip, DecodeNs: split.Decode},
		ActiveConnections: int64(s.ActiveConnections), TargetConnections: int64(s.TargetConnections),
		Connections: connections(s.Connections), MissingConnections: int64(s.Missing), Refusal: s.Refusal,
		Resources: resources(s.Resources), StalledMs: s.StalledMs,
		LastErrors: listed(s.LastErrors, func(e engine.ObservedError) *pb.ExecutionError {
			return &pb.ExecutionError{ErrorClass: string(e.Class), ErrorCode: e.Code, ErrorMessage: e.Message,
				Count: e.Count, FirstAt: instant(e.FirstAt.Time), LastAt: instant(e.LastAt.Time)}
		})}
}

func readSnapshot(p *pb.Snapshot) engine.WorkerSnapshot {
	split := p.GetTickSplit()
	return engine.WorkerSnapshot{RunID: p.GetRunId(), ResultID: p.GetResultId(), WorkerID: p.GetWorkerId(),
		WorkerGroupID: int(p.GetWorkerGroupId()), NodeID: p.GetNodeId(), Tick: p.GetTick(), Step: int(p.GetStep()),
		StepOver: p.GetStepOver(), StepMissing: int(p.GetStepMissing()), Timestamp: engine.At(moment(p.GetTimestamp())),
		Phase: engine.Phase(p.GetPhase()), Status: engine.WorkerStatus(p.GetStatus()), PhaseSeconds: p.GetPhaseSeconds(),
		TickSeconds: p.GetTickSeconds(), Started: p.GetStarted(), Succeeded: p.GetSucceeded(), Failed: p.GetFailed(),
		Scheduled: p.GetScheduled(), Dropped: p.GetDropped(), ByKind: readByKind(p.GetByKind(), readKindCounts),
		ByClass: readByClass(p.GetErrorsByClass()), Retries: p.GetRetries(),
		TickScheduled: p.GetTickScheduled(), TickStarted: p.GetTickStarted(), TickDropped: p.GetTickDropped(),
		TickErrors: p.GetTickErrors(), TickByKind: readByKind(p.GetTickByKind(), readKindCounts),
		TickLatency: readPacked(p.GetTickLatency()), PhaseLatency: readPacked(p.GetPhaseLatency()),
		KindLatency: readByKind(p.GetKindLatency(), readPacked), TickService: readPacked(p.GetTickService()),
		PhaseService: readPacked(p.GetPhaseService()), TickLag: readPacked(p.GetTickLag()), TargetQPS: p.TargetQps,
		InFlight: int(p.GetInFlight()), Waiting: int(p.GetWaiting()),
		TickSplit: engine.LatencySplit{Count: split.GetCount(), Lag: split.GetScheduleLagNs(), Wait: split.GetPoolWaitNs(),
			RoundTrip: split.GetRoundTripNs(), Decode: split.GetDecodeNs()},
		ActiveConnections: int(p.GetActiveConnections()), TargetConnections: int(p.GetTargetConnections()),
		Connections: readConnections(p.GetConnections()), Missing: int(p.GetMissingConnections()), Refusal: p.GetRefusal(),
		Resources: readResources(p.GetResources()), StalledMs: p.GetStalledMs(),
		LastErrors: listed(p.GetLastErrors(), func(e *pb.ExecutionError) engine.ObservedError {
			return engine.ObservedError{ExecutionError: engine.ExecutionError{Class: engine.ErrorClass(e.GetErrorClass()),
				Code: e.GetErrorCode(), Message: e.GetErrorMessage()}, Count: e.GetCount(),
				FirstAt: engine.At(moment(e.GetFirstAt())), LastAt: engine.At(moment(e.GetLastAt()))}
		})}
}
