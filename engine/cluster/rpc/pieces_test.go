package rpc

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// laden is a node with so many parts, of which each takes some 4 KB on the wire: ten times what one takes.
func laden(parts int) protocol.Hello {
	h := protocol.Hello{NodeID: "n", Version: "1.2.3", Protocol: 1, Session: "s",
		Workers: []protocol.WorkerState{{RunID: "r", WorkerID: "worker-0", NodeID: "n"}}}
	for i := range parts {
		a := engine.Artifact{RunID: "r", WorkerID: "worker-0", ResultID: "result", Kind: "executions",
			Name: fmt.Sprintf("executions-worker-0-%06d.parquet", i), SHA256: strings.Repeat("0123456789abcdef", 256)}
		id := protocol.PartWorkID(a)
		h.Parts = append(h.Parts, protocol.WorkReady{WorkID: id, NodeID: "n", Artifact: a,
			ArtifactURL: protocol.PartsPath + id})
	}
	return h
}

// TestANodeWithVeryManyPartsIntroducesItself, over a real stream, again and again.
func TestANodeWithVeryManyPartsIntroducesItself(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make check-ci: it takes many seconds")
	}
	whole := laden(10_000)
	pieces, err := piecesFromWire(whole)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for i, p := range pieces {
		size := proto.Size(p)
		sum += size
		if size > 2*helloPiece {
			t.Errorf("piece %d has %d bytes", i, size)
		}
		if len(p.GetHello().GetWorkers()) != 1 || p.GetHello().GetNodeId() != "n" {
			t.Errorf("piece %d does not say who the node is", i)
		}
	}
	if sum < protocol.MaxMessage {
		t.Fatalf("%d bytes fit into one message anyway", sum)
	}
	l, _ := besieged(t)
	d, err := NewDialer(DialOptions{Address: l.Addr().String(), Security: l.opts.Security, Process: "server-2"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	nodes := make(chan protocol.NodeEnd, 1)
	go func() {
		if e, err := l.Accept(t.Context()); err == nil {
			nodes <- e
		}
	}()
	end, err := d.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	node := <-nodes
	defer node.Close()
	sent := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for range 2 {
			if err := node.Send(ctx, whole); err != nil {
				cancel()
				sent <- err
				return
			}
		}
		sent <- node.Send(ctx, protocol.Pong{Seq: 1})
	}()
	for i := range 2 {
		if m, err := end.Receive(ctx); err != nil || !reflect.DeepEqual(m, whole) {
			h, _ := m.(protocol.Hello)
			t.Fatalf("Hello %d: %d parts, %v", i, len(h.Parts), err)
		}
	}
	if m, err := end.Receive(ctx); err != nil || m != (protocol.Pong{Seq: 1}) {
		t.Fatalf("behind it: %v, %v", m, err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// TestAHelloThatWasBrokenOffBeginsAnew: what had come of it does not count twice.
func TestAHelloThatWasBrokenOffBeginsAnew(t *testing.T) {
	t.Parallel()
	h := laden(3000)
	h.Quarantined = []protocol.QuarantinedPart{
		{RunID: "r", WorkerID: "worker-0", Name: "x", Reason: strings.Repeat("y", 5<<20)},
		{RunID: "r", WorkerID: "worker-0", Name: "z"},
	}
	pieces, err := piecesFromWire(h)
	if err != nil || len(pieces) < 4 {
		t.Fatal(len(pieces), err)
	}
	read := whole(fromNode)
	for _, p := range pieces[:2] {
		if m, err := read(p); err != errPart { //nolint:errorlint // exactly that
			t.Fatal(m, err)
		}
	}
	h.Quarantined[0].Reason = strings.Repeat("y", (16<<10)-1) + "…" // a sentence of 5 MB is read as far as one may go
	var m protocol.FromNode
	for _, p := range pieces {
		m, err = read(p)
	}
	if err != nil || !reflect.DeepEqual(m, h) {
		t.Errorf("%v: %d parts", err, len(m.(protocol.Hello).Parts))
	}
	if m, err := read(pieces[1]); err == nil || err == errPart { //nolint:errorlint // exactly that
		t.Error("a piece without those before it is taken", m)
	}
	small := protocol.Hello{NodeID: "n", Workers: []protocol.WorkerState{}}
	if pieces, err = piecesFromWire(small); err != nil || len(pieces) != 1 {
		t.Fatal(len(pieces), err)
	}
	if m, err = read(pieces[0]); err != nil || !reflect.DeepEqual(m, small) {
		t.Error(m, err)
	}
}

// TestAServerHoldsNoEndlessHello: a node that never ends one is cut off.
func TestAServerHoldsNoEndlessHello(t *testing.T) {
	t.Parallel()
	read := whole(func(*pb.FromNode) (protocol.FromNode, error) {
		return protocol.Hello{
			Parts:       make([]protocol.WorkReady, 1),
			Quarantined: make([]protocol.QuarantinedPart, maxParts/4),
		}, nil
	})
	for piece := int64(0); ; piece++ {
		_, err := read(&pb.FromNode{Message: &pb.FromNode_Hello{Hello: &pb.Hello{Piece: piece, More: true}}})
		switch {
		case piece < 4 && err != errPart: //nolint:errorlint // exactly that
			t.Fatal(piece, err)
		case piece == 4 && (err == nil || err == errPart): //nolint:errorlint // exactly that
			t.Fatal("it goes on for ever")
		case piece == 4:
			return
		}
	}
}
