package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// errUnknown: the message is of a later version.
var errUnknown = errors.New("unknown message")

// toWire is a message to a node as it travels. The run's clock does not: it
// belongs to the server's process.
func toWire(m protocol.ToNode) (*pb.ToNode, error) {
	switch m := m.(type) {
	case protocol.AssignRun:
		plan, err := json.Marshal(m.Plan)
		if err != nil {
			return nil, fmt.Errorf("writing the plan: %w", err)
		}
		workload, err := json.Marshal(m.Workload)
		if err != nil {
			return nil, fmt.Errorf("writing the workload: %w", err)
		}
		return &pb.ToNode{Message: &pb.ToNode_AssignRun{AssignRun: &pb.AssignRun{RunId: m.RunID, ResultId: m.ResultID,
			WorkerId: m.WorkerID, WorkerGroupId: int64(m.WorkerGroupID), Epoch: m.Epoch, RunName: m.RunName, PlanJson: plan,
			WorkloadJson: workload, Dsn: m.DSN.Reveal(), KeySlot: int64(m.KeySlot), Connections: int64(m.Connections),
			Workers: int64(m.Workers), ClockAheadNs: int64(m.ClockAhead), Traceparent: m.TraceParent,
			Own: listed(m.Own, func(o engine.OwnDatabase) *pb.OwnDatabase {
				return &pb.OwnDatabase{What: o.What, SystemId: o.SystemID, Oid: o.OID, Name: o.Name, Owners: o.Owners,
					Sealed: o.Sealed, Guests: o.Guests, Socket: o.Socket}
			})}}}, nil
	case protocol.RunEvent:
		event, err := json.Marshal(m.Event)
		if err != nil {
			return nil, fmt.Errorf("writing the event: %w", err)
		}
		return &pb.ToNode{Message: &pb.ToNode_RunEvent{RunEvent: &pb.RunEvent{Epoch: m.Epoch, EventJson: event,
			AtMost: m.AtMost}}}, nil
	case protocol.RunState:
		s := &pb.RunState{RunId: m.RunID, Epoch: m.Epoch, Status: string(m.Status), Phase: string(m.Phase),
			Started:      m.Started,
			LastSequence: m.LastSequence, StopReason: string(m.StopReason), DrainTimeoutNs: int64(m.DrainTimeout),
			StartAt: instant(m.StartAt), EndAt: instant(m.EndAt), AtMost: m.AtMost,
			Step: &pb.Step{Number: int64(m.Step.Number), SettleNs: int64(m.Step.Settle), LengthNs: int64(m.Step.Length)}}
		s.Targets = mapped(m.Targets, func(t engine.WorkerTarget) *pb.WorkerTarget {
			return &pb.WorkerTarget{TargetConnections: int64(t.TargetConnections), TargetQps: t.TargetQPS}
		})
		return &pb.ToNode{Message: &pb.ToNode_RunState{RunState: s}}, nil
	case protocol.ArtifactAck:
		return &pb.ToNode{Message: &pb.ToNode_ArtifactAck{ArtifactAck: &pb.ArtifactAck{RunId: m.RunID, WorkerId: m.WorkerID,
			Name: m.Name, Sha256: m.SHA256}}}, nil
	case protocol.WorkerAck:
		return &pb.ToNode{Message: &pb.ToNode_WorkerAck{WorkerAck: &pb.WorkerAck{RunId: m.RunID, WorkerId: m.WorkerID,
			ResultId: m.ResultID}}}, nil
	case protocol.Drain:
		return &pb.ToNode{Message: &pb.ToNode_Drain{Drain: &pb.Drain{Over: m.Over}}}, nil
	case protocol.StatusAck:
		return &pb.ToNode{Message: &pb.ToNode_StatusAck{StatusAck: &pb.StatusAck{Sequence: m.Sequence,
			Received: instant(m.Received), Sent: instant(m.Sent), Runs: listed(m.Runs, func(r protocol.OwnedRun) *pb.OwnedRun {
				return &pb.OwnedRun{RunId: r.RunID, Epoch: r.Epoch}
			})}}}, nil
	case protocol.Ping:
		return &pb.ToNode{Message: &pb.ToNode_Ping{Ping: &pb.Ping{Seq: m.Seq, Sent: instant(m.Sent)}}}, nil
	}
	return queryToWire(m)
}

// toNode reads what toWire has written.
func toNode(w *pb.ToNode) (protocol.ToNode, error) {
	switch w := w.GetMessage().(type) {
	case *pb.ToNode_AssignRun:
		p := w.AssignRun
		m := protocol.AssignRun{RunID: p.GetRunId(), ResultID: p.GetResultId(), WorkerID: p.GetWorkerId(),
			WorkerGroupID: int(p.GetWorkerGroupId()), Epoch: p.GetEpoch(), RunName: p.GetRunName(), DSN: secret.New(p.GetDsn()),
			KeySlot: int(p.GetKeySlot()), Connections: int(p.GetConnections()), Workers: int(p.GetWorkers()),
			ClockAhead: time.Duration(p.GetClockAheadNs()), TraceParent: p.GetTraceparent(),
			Own: listed(p.GetOwn(), func(o *pb.OwnDatabase) engine.OwnDatabase {
				return engine.OwnDatabase{What: o.GetWhat(), SystemID: o.GetSystemId(), OID: o.GetOid(), Name: o.GetName(),
					Owners: o.GetOwners(), Sealed: o.GetSealed(), Guests: o.GetGuests(), Socket: o.GetSocket()}
			})}
		if err := json.Unmarshal(p.GetPlanJson(), &m.Plan); err != nil {
			return nil, fmt.Errorf("reading the plan: %w", err)
		}
		if m.Plan == nil {
			return nil, errors.New("reading the plan: there is none")
		}
		if err := json.Unmarshal(p.GetWorkloadJson(), &m.Workload); err != nil {
			return nil, fmt.Errorf("reading the workload: %w", err)
		}
		return m, nil
	case *pb.ToNode_RunEvent:
		m := protocol.RunEvent{Epoch: w.RunEvent.GetEpoch(), AtMost: w.RunEvent.GetAtMost()}
		if err := json.Unmarshal(w.RunEvent.GetEventJson(), &m.Event); err != nil {
			return nil, fmt.Errorf("reading the event: %w", err)
		}
		return m, nil
	case *pb.ToNode_RunState:
		p := w.RunState
		step := p.GetStep()
		return protocol.RunState{RunID: p.GetRunId(), Epoch: p.GetEpoch(), Status: engine.Status(p.GetStatus()),
			Phase: engine.Phase(p.GetPhase()), Started: p.GetStarted(), LastSequence: p.GetLastSequence(),
			Targets: mapped(p.GetTargets(), func(t *pb.WorkerTarget) engine.WorkerTarget {
				return engine.WorkerTarget{TargetConnections: int(t.GetTargetConnections()), TargetQPS: t.TargetQps}
			}),
			Step: protocol.Step{Number: int(step.GetNumber()), Settle: time.Duration(step.GetSettleNs()),
				Length: time.Duration(step.GetLengthNs())},
			StopReason: engine.StopReason(p.GetStopReason()), DrainTimeout: time.Duration(p.GetDrainTimeoutNs()),
			StartAt: moment(p.GetStartAt()), EndAt: moment(p.GetEndAt()),
			AtMost: p.GetAtMost()}, nil
	case *pb.ToNode_ArtifactAck:
		p := w.ArtifactAck
		return protocol.ArtifactAck{RunID: p.GetRunId(), WorkerID: p.GetWorkerId(), Name: p.GetName(), SHA256: p.GetSha256()},
			nil
	case *pb.ToNode_WorkerAck:
		p := w.WorkerAck
		return protocol.WorkerAck{RunID: p.GetRunId(), WorkerID: p.GetWorkerId(), ResultID: p.GetResultId()}, nil
	case *pb.ToNode_Drain:
		return protocol.Drain{Over: w.Drain.GetOver()}, nil
	case *pb.ToNode_StatusAck:
		p := w.StatusAck
		return protocol.StatusAck{Sequence: p.GetSequence(), Received: moment(p.GetReceived()), Sent: moment(p.GetSent()),
			Runs: listed(p.GetRuns(), func(r *pb.OwnedRun) protocol.OwnedRun {
				return protocol.OwnedRun{RunID: r.GetRunId(), Epoch: r.GetEpoch()}
			})}, nil
	case *pb.ToNode_Ping:
		return protocol.Ping{Seq: w.Ping.GetSeq(), Sent: moment(w.Ping.GetSent())}, nil
	}
	return queryToNode(w.GetMessage())
}

// fromWire is a message of a node as it travels.
func fromWire(m protocol.FromNode) (*pb.FromNode, error) {
	switch m := m.(type) {
	case protocol.Hello:
		h := &pb.Hello{NodeId: m.NodeID, Version: m.Version, Protocol: int64(m.Protocol), Session: m.Session,
			Capacity: int64(m.Capacity), Queries: m.Queries,
			Workers: listed(m.Workers, workerState), Parts: listed(m.Parts, workReady)}
		h.Aside = listed(m.Quarantined, func(p protocol.QuarantinedPart) *pb.AsidePart {
			return &pb.AsidePart{RunId: p.RunID, WorkerId: p.WorkerID, Name: p.Name, Reason: p.Reason}
		})
		return &pb.FromNode{Message: &pb.FromNode_Hello{Hello: h}}, nil
	case protocol.Status:
		return &pb.FromNode{Message: &pb.FromNode_Status{Status: &pb.Status{
			NodeId:        m.NodeID,
			Alive:         m.Alive,
			AcceptingWork: m.AcceptingWork,
			Draining:      m.Draining,
			Refusal:       m.Refusal,
			Resources:     resources(m.Resources),
			At:            instant(m.At),
			Sequence:      m.Sequence,
			ClockOffsetNs: int64(m.ClockOffset),
			ClockErrorNs:  int64(m.ClockError),
		}}}, nil
	case protocol.RunAccepted:
		return &pb.FromNode{Message: &pb.FromNode_RunAccepted{RunAccepted: &pb.RunAccepted{RunId: m.RunID,
			WorkerId: m.WorkerID, NodeId: m.NodeID}}}, nil
	case protocol.RunRejected:
		return &pb.FromNode{Message: &pb.FromNode_RunRejected{RunRejected: &pb.RunRejected{RunId: m.RunID,
			WorkerId: m.WorkerID, NodeId: m.NodeID, Error: failure(m.Err)}}}, nil
	case protocol.WorkerState:
		return &pb.FromNode{Message: &pb.FromNode_WorkerState{WorkerState: workerState(m)}}, nil
	case protocol.Snapshot:
		return &pb.FromNode{Message: &pb.FromNode_Snapshot{Snapshot: snapshot(m.WorkerSnapshot)}}, nil
	case protocol.Log:
		return &pb.FromNode{Message: &pb.FromNode_Log{Log: &pb.Log{RunId: m.RunID, ResultId: m.ResultID, WorkerId: m.WorkerID,
			Level: string(m.Level), Message: m.Message, DetailsJson: m.Details, Timestamp: instant(m.Timestamp.Time)}}}, nil
	case protocol.WorkReady:
		return &pb.FromNode{Message: &pb.FromNode_WorkReady{WorkReady: workReady(m)}}, nil
	case protocol.PluginRequest:
		return &pb.FromNode{Message: &pb.FromNode_PluginWanted{PluginWanted: &pb.PluginWanted{Sha256: m.SHA256}}}, nil
	case protocol.Pong:
		return &pb.FromNode{Message: &pb.FromNode_Pong{Pong: &pb.Pong{Seq: m.Seq, Sent: instant(m.Sent)}}}, nil
	}
	return queryFromWire(m)
}

// fromNode reads what fromWire has written.
func fromNode(w *pb.FromNode) (protocol.FromNode, error) {
	if err := Sanitize(w.ProtoReflect()); err != nil {
		return nil, err
	}
	switch w := w.GetMessage().(type) {
	case *pb.FromNode_Hello:
		p := w.Hello
		return protocol.Hello{
			NodeID:   p.GetNodeId(),
			Version:  p.GetVersion(),
			Protocol: int(p.GetProtocol()),
			Session:  p.GetSession(),
			Capacity: int(p.GetCapacity()),
			Queries:  p.GetQueries(),
			Workers:  listed(p.GetWorkers(), readWorkerState),
			Parts: listed(
				p.GetParts(),
				readWorkReady,
			),
			Quarantined: listed(p.GetAside(), func(a *pb.AsidePart) protocol.QuarantinedPart {
				return protocol.QuarantinedPart{
					RunID:    a.GetRunId(),
					WorkerID: a.GetWorkerId(),
					Name:     a.GetName(),
					Reason:   a.GetReason(),
				}
			}),
		}, nil
	case *pb.FromNode_Status:
		p := w.Status
		return protocol.Status{
			NodeID:        p.GetNodeId(),
			Alive:         p.GetAlive(),
			AcceptingWork: p.GetAcceptingWork(),
			Draining:      p.GetDraining(),
			Refusal:       p.GetRefusal(),
			Resources:     readResources(p.GetResources()),
			At:            moment(p.GetAt()),
			Sequence:      p.GetSequence(),
			ClockOffset:   time.Duration(p.GetClockOffsetNs()),
			ClockError:    time.Duration(p.GetClockErrorNs()),
		}, nil
	case *pb.FromNode_RunAccepted:
		p := w.RunAccepted
		return protocol.RunAccepted{RunID: p.GetRunId(), WorkerID: p.GetWorkerId(), NodeID: p.GetNodeId()}, nil
	case *pb.FromNode_RunRejected:
		p := w.RunRejected
		return protocol.RunRejected{RunID: p.GetRunId(), WorkerID: p.GetWorkerId(), NodeID: p.GetNodeId(),
			Err: readFailure(p.GetError())}, nil
	case *pb.FromNode_WorkerState:
		return readWorkerState(w.WorkerState), nil
	case *pb.FromNode_Snapshot:
		return protocol.Snapshot{WorkerSnapshot: readSnapshot(w.Snapshot)}, nil
	case *pb.FromNode_Log:
		p := w.Log
		return protocol.Log{LogEntry: engine.LogEntry{RunID: p.GetRunId(), ResultID: p.GetResultId(),
			WorkerID: p.GetWorkerId(),
			Level:    engine.LogLevel(p.GetLevel()), Message: p.GetMessage(), Details: p.GetDetailsJson(),
			Timestamp: engine.At(moment(p.GetTimestamp()))}}, nil
	case *pb.FromNode_WorkReady:
		return readWorkReady(w.WorkReady), nil
	case *pb.FromNode_PluginWanted:
		return protocol.PluginRequest{SHA256: w.PluginWanted.GetSha256()}, nil
	case *pb.FromNode_Pong:
		return protocol.Pong{Seq: w.Pong.GetSeq(), Sent: moment(w.Pong.GetSent())}, nil
	}
	return queryFromNode(w.GetMessage())
}

// instant is a time as it travels; the zero time is left out.
func instant(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func moment(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// listed and mapped keep nil what is nil.
func listed[A, B any](in []A, f func(A) B) []B {
	if in == nil {
		return nil
	}
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}

func mapped[K comparable, A, B any](in map[K]A, f func(A) B) map[K]B {
	if in == nil {
		return nil
	}
	out := make(map[K]B, len(in))
	for k, a := range in {
		out[k] = f(a)
	}
	return out
}
