package rpc

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// TestAHostileNodeIsNotBelieved: names, figures and times that cannot be end its stream with an error that names the
// field. They were taken over as they came, and no JSON can be made of a figure that is no number.
func TestAHostileNodeIsNotBelieved(t *testing.T) {
	t.Parallel()
	hello := func(change func(*pb.Hello)) *pb.FromNode {
		h := &pb.Hello{NodeId: "n", Version: "v1.2.3", Session: "s"}
		change(h)
		return &pb.FromNode{Message: &pb.FromNode_Hello{Hello: h}}
	}
	snap := func(change func(*pb.Snapshot)) *pb.FromNode {
		s := &pb.Snapshot{RunId: "r", WorkerId: "w", Resources: &pb.Resources{}}
		change(s)
		return &pb.FromNode{Message: &pb.FromNode_Snapshot{Snapshot: s}}
	}
	status := func(change func(*pb.Status)) *pb.FromNode {
		s := &pb.Status{NodeId: "n", Resources: &pb.Resources{}}
		change(s)
		return &pb.FromNode{Message: &pb.FromNode_Status{Status: s}}
	}
	long := strings.Repeat("x", 10_000)
	for want, w := range map[string]*pb.FromNode{
		"": hello(func(*pb.Hello) {}),
		"Hello.version of 10000 characters; 512 are the most": hello(func(h *pb.Hello) { h.Version = long }),
		`Hello.version "\u202ev1"`:                            hello(func(h *pb.Hello) { h.Version = "\u202ev1" }),
		`Hello.version "\x1b[2J"`:                             hello(func(h *pb.Hello) { h.Version = "\x1b[2J" }),
		`Hello.session "a\u2028b"`:                            hello(func(h *pb.Hello) { h.Session = "a\u2028b" }),
		"WorkerState.status of 10000 characters": hello(func(h *pb.Hello) {
			h.Workers = []*pb.WorkerState{{Status: long}}
		}),
		"AsidePart.name of 10000": hello(func(h *pb.Hello) { h.Aside = []*pb.AsidePart{{Name: long}} }),
		"Resources.cpu_pct NaN":   status(func(s *pb.Status) { s.Resources.CpuPct = math.NaN() }),
		"Resources.memory_pct +Inf": status(func(s *pb.Status) {
			s.Resources.MemoryPct = math.Inf(1)
		}),
		"Status.at, which is no time": status(func(s *pb.Status) {
			s.At = &timestamppb.Timestamp{Seconds: math.MaxInt64}
		}),
		"Snapshot.timestamp, which is no time": snap(func(s *pb.Snapshot) {
			s.Timestamp = timestamppb.New(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
		}),
		"Snapshot.tick_seconds 1e+11": snap(func(s *pb.Snapshot) { s.TickSeconds = 1e11 }),
		"Snapshot.target_qps -Inf": snap(func(s *pb.Snapshot) {
			qps := math.Inf(-1)
			s.TargetQps = &qps
		}),
		"Snapshot.errors_by_class of 10000": snap(func(s *pb.Snapshot) { s.ErrorsByClass = map[string]int64{long: 1} }),
		"Snapshot.last_errors with 1001 entries": snap(func(s *pb.Snapshot) {
			s.LastErrors = make([]*pb.ExecutionError, 1001)
		}),
		"ExecutionError.error_code": snap(func(s *pb.Snapshot) {
			s.LastErrors = []*pb.ExecutionError{{ErrorCode: "\x07"}}
		}),
	} {
		_, err := fromNode(w)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestSentencesOfANodeAreShown, without what would be obeyed and not without end: lines of its log and its errors may
// hold what a database has said.
func TestSentencesOfANodeAreShown(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"SELECT 1\n\tFROM t":           "SELECT 1\n\tFROM t",
		"<img src=x onerror=alert(1)>": "<img src=x onerror=alert(1)>",
		"\x1b]0;owned\x07 \u202etxt":   "]0;owned txt",
		"one\u2028two\u2029three":      "onetwothree",
		strings.Repeat("é", 20_000):    strings.Repeat("é", (16<<10)-1) + "…",
	} {
		m, err := fromNode(&pb.FromNode{Message: &pb.FromNode_Log{Log: &pb.Log{RunId: "r", Level: "info", Message: said,
			DetailsJson: []byte(`{"a":1}`)}}})
		if err != nil {
			t.Fatal(err)
		}
		if l := m.(protocol.Log); l.Message != want || string(l.Details) != `{"a":1}` {
			t.Errorf("%.40q became %.40q, %s", said, l.Message, l.Details)
		}
		m, err = fromNode(&pb.FromNode{Message: &pb.FromNode_WorkerState{WorkerState: &pb.WorkerState{
			Error:  &pb.Error{Message: said, Hint: said, Fields: []*pb.FieldError{{Field: "f", Message: said}}},
			Totals: &pb.Totals{Problems: []string{"plain", said}}}}})
		if err != nil {
			t.Fatal(err)
		}
		s := m.(protocol.WorkerState)
		if s.Err.Message != want || s.Err.Hint != want || s.Err.Fields[0].Message != want ||
			!reflect.DeepEqual(s.Totals.Problems, []string{"plain", want}) {
			t.Errorf("%.40q became %.200v", said, s.Err)
		}
	}
	for _, details := range []string{`{"a":`, `"` + strings.Repeat("x", 64<<10) + `"`} {
		m, err := fromNode(&pb.FromNode{Message: &pb.FromNode_Log{Log: &pb.Log{DetailsJson: []byte(details)}}})
		if err != nil || len(m.(protocol.Log).Details) > 30 {
			t.Errorf("%.20q: %.60v, %v", details, m, err)
		}
	}
}
