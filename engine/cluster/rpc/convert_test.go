package rpc

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// filler gives every field a value of its own.
type filler struct{ n int64 }

func (f *filler) fill(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	f.n++
	switch v.Interface().(type) {
	case engine.Time:
		v.Set(reflect.ValueOf(engine.At(time.Unix(1_790_000_000+f.n, 123_000_000))))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1_790_000_000+f.n, 123_456_789).UTC()))
		return
	case engine.Kind:
		v.Set(reflect.ValueOf(engine.Kind(f.n % int64(engine.NumKinds))))
		return
	case engine.PackedHistogram: // its counts and their width belong together
		v.Set(reflect.ValueOf(*histogram.Pack(&engine.HistogramData{Schema: 3, Offset: int(f.n), Counts: []int64{f.n, 0, 1},
			Sum: f.n + 1, Min: f.n + 2, Max: f.n + 3})))
		f.n += 3
		return
	case *engine.PackedKeys: // its columns and their ends belong together
		packer := engine.NewKeyPacker([]string{"a", "b"}, []engine.ValueType{engine.TypeI64, engine.TypeText}, 10, 1000)
		for _, text := range []string{"one", "", "zwölf"} {
			if err := packer.Add([]any{f.n, text}); err != nil {
				t.Fatal(err)
			}
		}
		v.Set(reflect.ValueOf(packer.Keys()))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(fmt.Sprintf(`{"n":%d}`, f.n))))
		return
	case secret.Secret:
		v.Set(reflect.ValueOf(secret.New(fmt.Sprint("text ", f.n))))
		return
	case error:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(f.n)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.25)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			f.fill(t, v.Index(i), path)
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(t, v.Index(i), path)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(t, k, path)
			f.fill(t, e, path)
			v.SetMapIndex(k, e)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			// The cause of an error stays where it happened, the run's clock too, and the number of
			// a line of the log is the server's. A run whose sampled rows cannot be read begins nowhere.
			if field.Name == "Cause" || field.Name == "Clock" || field.Name == "PoolsUnreadable" ||
				path == "Log.LogEntry" && field.Name == "Seq" {
				continue
			}
			f.fill(t, v.Field(i), path+"."+field.Name)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(fmt.Sprint("any ", f.n)))
	default:
		t.Fatalf("%s: a %s cannot be filled", path, v.Kind())
	}
}

func trip[M any, P proto.Message](t *testing.T, m any, there func(M) (P, error), empty P, back func(P) (M, error)) {
	t.Helper()
	name := reflect.TypeOf(m).Name()
	filled := reflect.New(reflect.TypeOf(m)).Elem()
	(&filler{}).fill(t, filled, name)
	for _, v := range []any{filled.Interface(), m} {
		w, err := there(v.(M))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		data, err := proto.Marshal(w)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		proto.Reset(empty)
		if err := proto.Unmarshal(data, empty); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := back(empty)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, v) {
			t.Errorf("%s came back changed:\n got %+v\nwant %+v", name, got, v)
		}
	}
}

// TestEveryMessageComesBackAsItWas: with every field filled, and with none.
func TestEveryMessageComesBackAsItWas(t *testing.T) {
	t.Parallel()
	for _, m := range []protocol.ToNode{protocol.AssignRun{Plan: &engine.Plan{},
		Workload: engine.Workload{Params: json.RawMessage("null")}}, protocol.RunEvent{}, protocol.RunState{},
		protocol.ArtifactAck{}, protocol.WorkerAck{}, protocol.Drain{}, protocol.StatusAck{}, protocol.Ping{},
		protocol.AssignWork{}, protocol.CancelWork{}} {
		trip(t, m, toWire, &pb.ToNode{}, toNode)
	}
	for _, m := range []protocol.FromNode{protocol.Hello{}, protocol.Status{}, protocol.RunAccepted{}, protocol.RunRejected{},
		protocol.WorkerState{}, protocol.Snapshot{}, protocol.Log{}, protocol.WorkReady{}, protocol.PluginRequest{},
		protocol.Pong{}, protocol.WorkAccepted{}, protocol.WorkRejected{}, protocol.WorkFailed{}, protocol.SegmentRequest{}} {
		trip(t, m, fromWire, &pb.FromNode{}, fromNode)
	}
}

// FuzzWhatANodeSays: whatever a peer sends is read or refused, and what was read is
// written the same again.
func FuzzWhatANodeSays(f *testing.F) {
	w, err := fromWire(protocol.Snapshot{WorkerSnapshot: engine.WorkerSnapshot{RunID: "r",
		TickLatency: &engine.PackedHistogram{Schema: 6, Width: 1, Counts: []byte{1, 2}}}})
	if err != nil {
		f.Fatal(err)
	}
	data, _ := proto.Marshal(w)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var up pb.FromNode
		if proto.Unmarshal(data, &up) == nil {
			if m, err := fromNode(&up); err == nil {
				if _, err := fromWire(m); err != nil {
					t.Fatalf("%+v was read and cannot be written: %v", m, err)
				}
			}
		}
		var down pb.ToNode
		if proto.Unmarshal(data, &down) == nil {
			_, _ = toNode(&down)
		}
	})
}
